/* relational_plots.h - pictures of a training run, as SVG files in its directory: the loss after
 * `pith train`, the rest with `pith eval --plots`. Charts are drawn by cli/drawing/svg_chart.h. */
#ifndef PITH_CLI_TABLES_RELATIONAL_PLOTS_H
#define PITH_CLI_TABLES_RELATIONAL_PLOTS_H

#include "cli/tables/relational_run.h"

/* All return EXIT_DONE, or another exit code after a message. A picture without data is not
 * written. */
/* loss.svg: the losses of log.jsonl. */
int plot_loss(const relational_run *run, const command *c);
/* roc.svg and calibration.svg of the rows of a part (pith_relational_split), for answers that are
 * probabilities of yes; for numbers and ranks calibration.svg alone. */
int plot_answers(const relational_run *run, const command *c, int32_t split, const pith_call *call);
/* importance.svg: rises as pith eval --json prints them. */
int plot_importance(const relational_run *run, const command *c, const json_t *rises);

#endif
