"""What this computer computes with: devices, the cores behind them, a thread for each."""
