"""What happens when files are damaged and processes are killed."""
