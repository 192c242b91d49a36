"""What the paper compares with."""
