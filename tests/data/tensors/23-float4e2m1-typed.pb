*g2ëÀN1B
float4e2m1