/* crop_name.h - what crops are called. */
#ifndef PITH_CLI_PICTURES_CROP_NAME_H
#define PITH_CLI_PICTURES_CROP_NAME_H

#include <stddef.h>

/* The name below the folder of the crops of face n (from 1) of a picture; from malloc. picture: its
 * name there, with the ending of what is written. rule: has {stem}, {n} and {ext}. from_map: the
 * rule is the name that a map gives, which gets the picture's ending if it has none of a format
 * that is written, or of another one than format ("jpeg", "png", "webp"; NULL: any). */
char *crop_name(const char *picture, const char *rule, int from_map, const char *format, size_t n);

#endif
