Bfloat8e4m3fnJüLËA£$O€r
”I