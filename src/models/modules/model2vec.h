/* model2vec.h - directories in Model2Vec's own layout. */
#ifndef PITH_MODELS_MODULES_MODEL2VEC_H
#define PITH_MODELS_MODULES_MODEL2VEC_H

#include "models/modules/module_class.h"

/* Reads the directory if its config.json says that it is a static model. *is: whether it does. */
pith_status pith__model2vec_read(bool *is, pith__module_reader *r);

#endif
