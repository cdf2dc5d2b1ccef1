/*
 * Who may come in with which bearer token: a file as kube-apiserver's --token-auth-file has it, one
 * line each, read once at start and the same for all threads afterwards.
 *
 *     token,user,uid,"group1,group2"
 */
#ifndef VIGIL_KUBE_REQUEST_TOKENS_H
#define VIGIL_KUBE_REQUEST_TOKENS_H

#include "base/error.h"
#include "base/slice.h"

enum { KUBE_TOKENS_BYTES_MAX = 1 << 20, KUBE_TOKENS_MAX = 10000 };

struct kube_user {
    struct slice token, name, uid;
    struct slice groups; /* between commas */
};

struct kube_tokens;

/* The whole file, which the error names. ST_INVALID with the line that is wrong. */
MUST_CHECK
enum status kube_tokens_parse(const char *name, struct slice text, struct kube_tokens **ret_tokens,
                              struct error *error);
MUST_CHECK
enum status kube_tokens_read(const char *path, struct kube_tokens **ret_tokens,
                             struct error *error);
void kube_tokens_free(struct kube_tokens *tokens);
DEFINE_CLEANUP(struct kube_tokens *, kube_tokens_free)

/* By an Authorization field: "Bearer …". Takes as long for a wrong token as for a right one. NULL:
 * nobody. */
const struct kube_user *kube_tokens_find(const struct kube_tokens *tokens, struct slice field);

/* The one of the file's first line. */
const struct kube_user *kube_tokens_first(const struct kube_tokens *tokens);

#endif
