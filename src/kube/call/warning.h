/*
 * The warnings of an answer, with Kubernetes' limits: each text once; when all together have more
 * than KUBE_WARNINGS_MAX characters, each is cut to KUBE_WARNING_CUT, and once these are as many,
 * the rest is omitted.
 *
 * They are collected as texts with a zero byte behind each, so that the length of the buffer is a
 * place to go back to when an attempt is repeated; the fields are made when the answer begins.
 */
#ifndef VIGIL_KUBE_CALL_WARNING_H
#define VIGIL_KUBE_CALL_WARNING_H

#include "base/buf.h"

/* In characters. */
enum { KUBE_WARNINGS_MAX = 4096, KUBE_WARNING_CUT = 256 };

/* The texts that are kept: a longer one is cut in any case, and there is no room in an answer for
 * the fields of more. */
enum {
    KUBE_WARNING_BYTES_MAX = 4 * (KUBE_WARNINGS_MAX + 1),
    KUBE_WARNINGS_COUNT_MAX = 512,
};

/* A text that is empty, not UTF-8 or has control characters is omitted, as one without memory. */
void kube_warning_add(struct buf *warnings, struct slice text);

/* Calls add with the value of each Warning field: 299 - "text". The value is only borrowed. */
void kube_warning_fields(struct slice warnings, void (*add)(void *ctx, struct slice value),
                         void *ctx);

#endif
