B
float4e2m1Jg2ëÀN1