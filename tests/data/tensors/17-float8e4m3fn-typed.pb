*üLËA£$O€r
”IBfloat8e4m3fn