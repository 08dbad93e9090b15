/* annotate.h - boxes and landmarks of faces drawn into a picture. */
#ifndef PITH_CLI_DRAWING_ANNOTATE_H
#define PITH_CLI_DRAWING_ANNOTATE_H

#include <pith/detect.h>

/* Draws into a picture, RGB or RGB and alpha: green boxes, and a point for each landmark (red on
 * the person's right side, yellow the nose, blue on the left). Lines grow with the picture; parts
 * outside of it are left out. */
void annotate_faces(pith_image *image, const pith_faces *faces);

#endif
