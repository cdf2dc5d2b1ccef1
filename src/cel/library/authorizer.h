/*
 * Questions about permissions, and their builder:
 *
 *     authorizer.group("apps").resource("deployments").namespace("web").check("create").allowed()
 *     authorizer.serviceAccount("web", "bot").path("/metrics").check("get").reason()
 *
 * The server that evaluates an expression decides about a question (struct cel_access). It may not
 * know the answer yet: then check fails, the server finds the answer out, and evaluates the
 * expression again.
 */
#ifndef VIGIL_CEL_LIBRARY_AUTHORIZER_H
#define VIGIL_CEL_LIBRARY_AUTHORIZER_H

#include "cel/library/library.h"

struct cel_access;

/* What an expression asks. All texts are borrowed from the evaluation. */
struct cel_question {
    const struct cel_access *access;
    bool of_account; /* about a service account, and not the user of the request */
    struct slice account_namespace, account;
    bool of_path; /* about a path, and not a resource */
    struct slice path, group, resource, subresource, namespace, name;
    struct slice field_selector, label_selector;
    struct slice verb;
};

struct cel_answer {
    bool allowed;
    struct slice reason;
    struct slice error; /* empty: the question could be answered */
};

/* On the thread of the evaluation. */
struct cel_access {
    /* False: the answer is not known yet. Texts of the answer outlive the evaluation. */
    bool (*decide)(const struct cel_access *access, struct cel_work *work,
                   const struct cel_question *question, struct cel_answer *ret_answer);
};

/* The value of `authorizer`, and with a resource that of `authorizer.requestResource`. An error
 * without memory. */
struct cel_value cel_authorizer_new(struct arena *arena, const struct cel_question *question);

extern const struct cel_library cel_authorizers;

#endif
