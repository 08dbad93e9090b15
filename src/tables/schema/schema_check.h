/* schema_check.h - the checks of a schema that need no data. */
#ifndef PITH_TABLES_SCHEMA_SCHEMA_CHECK_H
#define PITH_TABLES_SCHEMA_SCHEMA_CHECK_H

#include "tables/schema/schema.h"

/* Fails at the first name that does not exist and at the first column whose kind does not fit its
 * use. path is for the message. */
pith_status pith__schema_check(const pith__schema *schema, const char *path, pith_error *err);

#endif
