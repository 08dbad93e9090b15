B
float8e5m2JY©†ta»ä¾yåþx!=