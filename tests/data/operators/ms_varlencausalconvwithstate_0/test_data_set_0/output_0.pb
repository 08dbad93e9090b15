
By0J8½BlƒE¡G5“¼˜“H¦I­#BM´ÇD«²¯]¥ÊCåŒp°ODME›H´\F[?3@´äB