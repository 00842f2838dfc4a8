"""What people see: tables, small plots, pages."""
