/*
 * Compares an operation with what the model says. A difference is a violation.
 */
#ifndef VIGIL_TESTS_SIM_COMPARE_H
#define VIGIL_TESTS_SIM_COMPARE_H

#include "operations.h"

/* What can be said as soon as the answer has arrived: permissions, and that nothing goes back. */
void compare_answer(const struct operation *op);
/* The history has everything up to the revision of the answer. */
void compare_with_history(const struct operation *op);

#endif
