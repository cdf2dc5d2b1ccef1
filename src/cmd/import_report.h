/* What an import prints for people and programs: its progress and its result. */
#ifndef VIGIL_CMD_IMPORT_REPORT_H
#define VIGIL_CMD_IMPORT_REPORT_H

#include "base/progress.h"
#include "import/import.h"

#include <stdio.h>

/* A bar on a terminal; a line for each stage elsewhere. */
struct import_bar {
    struct progress progress;
    const char *program; /* "vigil import" */
    bool is_quiet;
    int stage; /* the last one shown; -1: none */
};

void import_bar_init(struct import_bar *bar, FILE *to, const char *program, bool is_quiet);
struct import_progress import_bar_progress(struct import_bar *bar);
/* Erases the bar. */
void import_bar_end(struct import_bar *bar);

enum import_report { IMPORT_TEXT, IMPORT_JSON, IMPORT_SILENT };

/* Runs the import and prints its result; as text, with a progress bar. Returns the exit status. */
int import_and_report(const char *program, struct import_options *options,
                      enum import_report report);
/* Returns the exit status. The error is empty when memory ran out. */
int import_report_failure(const char *program, enum status status, const struct error *error);

#endif
