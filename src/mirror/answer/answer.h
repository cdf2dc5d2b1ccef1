/* What an error of the cluster means for an operation. */
#ifndef VIGIL_MIRROR_ANSWER_ANSWER_H
#define VIGIL_MIRROR_ANSWER_ANSWER_H

#include "base/slice.h"
#include "base/status.h"

struct engine_op;

/* The status of the table that has this text and code, or else one with this code. */
enum status cluster_status_of(enum grpc_code code, struct slice text);
/* Sets status and text of a failed operation. The text is copied into the operation's arena. */
void cluster_fail(struct engine_op *op, enum grpc_code code, struct slice text);

#endif
