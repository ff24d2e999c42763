"""Random programs: `grammar` writes one, `prelude` holds the classes and functions it may use,
`compare` runs it as plain Python and compiled; as a program itself it runs many of them."""
