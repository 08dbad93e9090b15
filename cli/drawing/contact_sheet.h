/* contact_sheet.h - an HTML page with the crops of a run, and with the pictures that were left out.
 */
#ifndef PITH_CLI_DRAWING_CONTACT_SHEET_H
#define PITH_CLI_DRAWING_CONTACT_SHEET_H

#include "cli/base/text_input.h"
#include "cli/output/output.h"

typedef struct contact_sheet {
    output out;
    char *folder; /* of the page, absolute; NULL: there is no page */
    bytes crops, others;
    size_t crop_count, other_count;
} contact_sheet;

/* Links are relative to the page's folder, which must be there. EXIT_DONE, or another exit code
 * after a message. */
int contact_sheet_open(contact_sheet *s, const command *c, const char *path,
                       const string_list *inputs);
/* Adds dir/name, which was cut out of the picture `from`. The rest does nothing if the page was not
 * opened. */
void contact_sheet_add(contact_sheet *s, const char *dir, const char *name, const char *from,
                       const char *caption);
/* Adds a picture of which there is no crop, or none of one face; why: in words. */
void contact_sheet_leave_out(contact_sheet *s, const char *path, const char *why);
/* Writes the page. code: of the work so far; returns it, or EXIT_FAILED after a message. */
int contact_sheet_close(contact_sheet *s, const command *c, int code);

#endif
