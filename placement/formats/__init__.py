"""What model formats hold: files read and checked, graphs made of them, programs to run."""
