/* `vigil cel check --schema`: the rules of a CustomResourceDefinition, with what each may cost. */
#ifndef VIGIL_CMD_CEL_SCHEMA_H
#define VIGIL_CMD_CEL_SCHEMA_H

#include <stdbool.h>

/* Prints the rules and what is wrong with them. Returns the exit status: 0, 1 (something is wrong
 * with the definition) or 2 (the file cannot be read). */
int cel_schema_check(const char *path, bool as_json);

#endif
