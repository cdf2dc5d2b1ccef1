/* Texts as Go's strings treats them, and values as its fmt and Kubernetes' field errors print them.
 */
#ifndef VIGIL_KUBE_TYPES_GO_TEXT_H
#define VIGIL_KUBE_TYPES_GO_TEXT_H

#include "codec/json/tree.h"

/* Limit of a value in an error message; the rest is cut off. */
enum { GO_SHOWN_BYTES_MAX = 4096 };

/* strings.TrimSpace, for spaces of ASCII. */
struct slice go_trim(struct slice text);

/* %q: with quotes and escapes. */
MUST_CHECK
enum status go_quote(struct slice text, struct buf *to);

/*
 * Appends a bad value in the form of a cause: strings quoted, numbers and bools plain, others as
 * JSON.
 */
MUST_CHECK
enum status go_value_append(const struct json_node *value, struct arena *arena, struct buf *to);

/* %v of a float64: 1.5, 3, 1e+21. Returns text. */
enum { GO_FLOAT_BYTES = 40 };
const char *go_float(double number, char text[GO_FLOAT_BYTES]);

/*
 * Whether Go decodes these digits as a float64: they have a point or an exponent, or exceed 64
 * bits.
 */
bool go_is_float(struct slice digits);

#endif
