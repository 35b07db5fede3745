"""Helpers of the pages: with the pages themselves the only code that imports Streamlit."""
