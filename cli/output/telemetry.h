/* telemetry.h - --telemetry: a line on standard error for each stage of the work, when it ends.
 *
 * The stages are the phases of a profile that records nothing, so they cost what telling them
 * costs. One command has one telemetry. */
#ifndef PITH_CLI_OUTPUT_TELEMETRY_H
#define PITH_CLI_OUTPUT_TELEMETRY_H

#include "cli/base/cli.h"

/* format: off, text or json, by number. With a profile, it tells of its phases; without one,
 * *profile becomes one that tells only. Returns an exit code, after a message. */
int telemetry_begin(pith_profile **profile, const command *c, int format, int32_t threads);
/* The model is open: the lines now say what runs it. Lines of opening waited for this. */
void telemetry_model(const pith_model *model);
/* Tells what still waits, and destroys the profile if telemetry_begin made it; *profile is NULL
 * then. */
void telemetry_end(pith_profile **profile);

#endif
