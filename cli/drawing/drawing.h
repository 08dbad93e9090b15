/* drawing.h - everything that the command draws. No other verb needs this folder, and the library
 * needs none of it:
 *
 *     annotate.h          faces marked in a picture           pith detect --annotate
 *     contact_sheet.h     a page with the crops of a run      pith crop --contact-sheet
 *     database_diagram.h  tables and their keys as SVG        pith inspect DATABASE --svg
 *     svg_chart.h         lines, points and bars as SVG       pith train, pith eval --plots
 *                                                             (cli/tables/relational_plots.h)
 */
#ifndef PITH_CLI_DRAWING_DRAWING_H
#define PITH_CLI_DRAWING_DRAWING_H

#include "cli/drawing/annotate.h"
#include "cli/drawing/contact_sheet.h"
#include "cli/drawing/database_diagram.h"
#include "cli/drawing/svg_chart.h"

#endif
