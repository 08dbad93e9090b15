*Y©†ta»ä¾yåþx!=B
float8e5m2