/*
 * The guarantees are checked during the run: whenever the history has grown, everything that
 * it decides is compared with it, so that a violation is reported at the step that shows it.
 */
#ifndef VIGIL_TESTS_SIM_CHECKS_H
#define VIGIL_TESTS_SIM_CHECKS_H

#include <stdbool.h>

/* The history has grown by whole revisions. */
void checks_run(void);
/* The run is over. The history is complete; or partial, because the data is damaged. */
void checks_finish(bool partial);

#endif
