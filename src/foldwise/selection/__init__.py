"""Model selection and validation: how many clusters or components, and how certain."""
