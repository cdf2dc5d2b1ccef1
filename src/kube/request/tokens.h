/*
 * The users of bearer tokens: a file in the format of kube-apiserver's --token-auth-file, one line
 * per user, read once at the start and shared by all threads.
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
    struct slice groups; /* separated by commas */
};

struct kube_tokens;

/* Parses a whole file. ST_INVALID: the error names the file and the line. */
MUST_CHECK
enum status kube_tokens_parse(const char *name, struct slice text, struct kube_tokens **ret_tokens,
                              struct error *error);
MUST_CHECK
enum status kube_tokens_read(const char *path, struct kube_tokens **ret_tokens,
                             struct error *error);
void kube_tokens_free(struct kube_tokens *tokens);
DEFINE_CLEANUP(struct kube_tokens *, kube_tokens_free)

/* The user of an Authorization field: "Bearer …". Takes as long for a wrong token as for a right
 * one. NULL: unknown. */
const struct kube_user *kube_tokens_find(const struct kube_tokens *tokens, struct slice field);

/* The user of the first line. */
const struct kube_user *kube_tokens_first(const struct kube_tokens *tokens);

#endif
