"""What several scripts share: figures and tables, made-up graphs, steps in turns."""
