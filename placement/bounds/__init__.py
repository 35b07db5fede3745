"""Lower bounds on the step of any placement, and CEFT, the critical path on unequal devices."""
