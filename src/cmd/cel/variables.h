/* The variables that --var and --file give to an expression. Everything is in one arena. */
#ifndef VIGIL_CMD_CEL_VARIABLES_H
#define VIGIL_CMD_CEL_VARIABLES_H

#include "base/error.h"
#include "cel/check/checker.h"
#include "cel/value/value.h"

enum { CEL_VARIABLES_MAX = 64, CEL_FILE_BYTES_MAX = 16 << 20 };

struct cel_variables {
    struct cel_work work;
    struct cel_variable declared[CEL_VARIABLES_MAX];
    struct cel_value values[CEL_VARIABLES_MAX];
    uint32_t count;
};

/*
 * Adds the variables of a list such as `x=1,names=["a", "b"]`. A number, text or bool has that
 * type; a list, a map and null are dyn, as objects are in policies. The error names the variable.
 */
MUST_CHECK
enum status cel_variables_add(struct cel_variables *variables, struct slice list,
                              struct error *error);

/* Adds what a file of YAML or JSON contains as the variable self; "-" is standard input. */
MUST_CHECK
enum status cel_variables_add_file(struct cel_variables *variables, const char *path,
                                   struct error *error);

#endif
