"""What people see: a report is a value (`values`), made by one function per kind of result and rendered in several ways."""
