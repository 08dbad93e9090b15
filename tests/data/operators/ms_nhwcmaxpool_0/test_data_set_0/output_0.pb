By0JYY#ннxxxiioooPPCXX\\\
