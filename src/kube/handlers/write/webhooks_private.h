/* What the steps of webhooks share with the calls that they make
 * (kube/handlers/write/webhook_call.c). */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_WEBHOOKS_PRIVATE_H
#define VIGIL_KUBE_HANDLERS_WRITE_WEBHOOKS_PRIVATE_H

#include "kube/call/webhook_metrics.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/handlers/write/webhooks.h"
#include "kube/policy/webhooks/concern.h"
#include "kube/webhook/caller.h"

/* A webhook that may concern the write. */
struct kube_hook {
    const struct kube_lookup_object *configuration; /* held */
    const struct kube_webhook *webhook;
    const struct kube_kind *kind; /* validating: as which it sees the object; NULL: it does not */
    /* Mutating: it was called and says IfNeeded; the object has changed since, so that it is called
     * in the second pass. */
    bool was_called, is_repeated;
};

struct kube_hook_call {
    struct kube_hooks *hooks;
    struct kube_hook *hook;
    const struct kube_kind *kind;
    struct slice uid;
    struct kube_webhook_call call;
    size_t arrival; /* 1: was the first to arrive */
    int64_t began_ns, took_ns;
};

/* In the arena of the call. */
struct kube_hooks {
    struct kube_change *change;
    struct kube_hook *items; /* those that validate, and behind them those that mutate */
    size_t count, capacity, validating;
    size_t at;                      /* mutating: the next one, counted from `validating` */
    const struct json_node *output; /* the object after the first pass; NULL: not needed */
    bool called;                    /* mutating: some were called */
    bool chosen;                    /* validating: it is known which of them concern the write, */
    size_t next;                    /* and this is the next one to be called */
    size_t review_bytes;            /* size of the reviews that are prepared */
    bool asked;                     /* validating: some were called */

    struct kube_hook_call *calls;
    size_t call_count, waiting, arrived;
    struct arena arena;                     /* memory of the calls */
    void (*on_end)(struct kube_call *call); /* that the call had before */

    /* Verdicts that hold for other attempts with the same stored object. Those of validating
     * webhooks hold only for the object that they have seen: another attempt can come to another
     * one, because a plugin has chosen another address, or a policy or webhook is new or gone. */
    struct kube_hooks_kept {
        int64_t revision;
        bool is_mutated, is_checked;
        struct buf mutated;  /* the object as mutating admission has left it; empty: unchanged */
        struct buf checked;  /* the object that was allowed, as text_of_checked writes it */
        struct buf warnings; /* those of all webhooks: kube/call/warning.h */
    } kept;
};

/* -- One write, as webhooks see it -- */

struct kube_asking {
    struct kube_change *change;
    struct kube_hooks *hooks;
    struct kube_policy_write write;
    struct kube_policy_run run;
    bool mutates;
};

/* False: call->status says why. */
MUST_CHECK
bool kube_asking_begin(struct kube_asking *asking, struct kube_change *change, bool mutates);
/* Nothing is deleted: the object was not selected. */
bool kube_asking_is_idle(const struct kube_change *change);
/* What conditions have cost counts for all of the write. */
void kube_asking_charge(struct kube_asking *asking);
/* Whether the webhook concerns the write; kube_asking_undecided is for all but the first two
 * answers. */
enum kube_webhook_concern kube_hook_concerns(struct kube_asking *asking,
                                             const struct kube_webhook *webhook,
                                             const struct kube_kind **ret_kind);
enum kube_stepped kube_asking_undecided(struct kube_asking *asking,
                                        enum kube_webhook_concern concern);

/* -- Calls -- */

/* Room for calls, whose memory is charged to the client. */
MUST_CHECK
bool kube_hooks_make_room(struct kube_hooks *hooks, size_t count);
/* Adds a call of the webhook, unless it cannot be called and failures of it are ignored. False: the
 * write is refused. */
MUST_CHECK
bool kube_hook_prepare(struct kube_asking *asking, struct kube_hook *hook,
                       const struct kube_kind *kind);
void kube_hooks_end_calls(struct kube_hooks *hooks);
/* Whether the answers are so long that they are read on the worker. */
bool kube_hooks_are_long(const struct kube_hooks *hooks);

/* -- Answers -- */

/* False: the write is refused. *ret_decides: there is a verdict, which allows it. */
MUST_CHECK
bool kube_hook_judge(struct kube_asking *asking, struct kube_hook_call *call,
                     struct kube_webhook_verdict *verdict, bool *ret_decides);
/* For metrics. */
void kube_hook_count(const struct kube_asking *asking, const struct kube_webhook *webhook,
                     enum kube_webhook_outcome outcome, unsigned code, int64_t took_ns);
/* The warnings of an attempt before. */
void kube_hooks_warn_again(struct kube_asking *asking);

#endif
