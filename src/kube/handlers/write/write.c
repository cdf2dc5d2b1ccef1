/*
 * The steps of a write, in order.
 *
 * When the head of a request arrives, the gate (kube/call/gate.h) authenticates its user and
 * decides whether it may do this to this path; the body is read only then. With the body,
 * kube/server/dispatch.c finds the path, the query and the kind. kube_mutate then finds out what is
 * to be written and checks the options, and the lists below take over:
 *
 *     POST ───────► creates ──► stored ──► answer
 *                    ▲   │
 *     does not exist │   │ exists meanwhile
 *                    │   ▼
 *     PUT, PATCH ─► updates ──► stored ──► answer
 *                    ▲
 *                    │ anything else
 *     PUT ────────► heartbeats ─► stored ─► answer     of a Lease
 *
 *     DELETE, … ──► changes ──► stored ──► answer
 *
 * The transaction that stores an object is refused if what it depends on has changed meanwhile: the
 * object itself, its namespace, a quota, or an address that a service wants. Then the list goes
 * back, a limited number of times, to the row that is marked READS or DECIDES.
 *
 * A step decides (it returns true, or false with the reason in call->status), or it waits: for the
 * store, for a turn in a queue, for what a plugin has to know. A step that only decides needs no
 * flag: it runs on the worker if the objects are large, or if it returns KUBE_STEP_LONG, whichever
 * step was before it, and uses only what call_offload.h allows there. A step that may wait, or that
 * uses the state of the API, is ON_LOOP, and consists of two functions:
 *
 *     enum kube_stepped kube_x(struct kube_change *change)   static void on_x(…)
 *     {                                                      {
 *         if (there is nothing to wait for)                      take the result into the change
 *             return KUBE_STEP_NEXT;                             if (kube_call_succeeded(call, …))
 *         kube_call_hold(call);                                      kube_change_next(change);
 *         start it, with on_x as its end                     }
 *         return KUBE_STEP_LEFT;
 *     }
 *
 * While a write waits it holds no thread, and its client may disconnect: kube_call_succeeded then
 * returns false, and the call may be gone. on_x may be called before kube_x returns, so neither
 * kube_x nor the loop below touches the change after KUBE_STEP_LEFT. Besides kube_change_next there
 * are kube_change_resume, which runs the same step again, and kube_change_again, which begins
 * another attempt. A step is called in each attempt unless its row has ONCE. What it keeps for the
 * next attempts is in the arena of the call; change->arena lives as long as the attempt.
 */
#include "kube/handlers/write/write.h"

#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/certificate_request.h"
#include "kube/handlers/write/change.h"
#include "kube/handlers/write/charge.h"
#include "kube/handlers/write/convert.h"
#include "kube/handlers/write/create.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/definition.h"
#include "kube/handlers/write/guard.h"
#include "kube/handlers/write/heartbeat.h"
#include "kube/handlers/write/managed_versions.h"
#include "kube/handlers/write/mutating.h"
#include "kube/handlers/write/node_facts.h"
#include "kube/handlers/write/policies.h"
#include "kube/handlers/write/reserve.h"
#include "kube/handlers/write/store.h"
#include "kube/handlers/write/subresource.h"
#include "kube/handlers/write/survey.h"
#include "kube/handlers/write/update.h"
#include "kube/handlers/write/webhooks.h"
#include "kube/handlers/write/without_effect.h"
#include "kube/policy/access/guard.h"
#include "kube/policy/access/identity.h"
#include "kube/types/go_text.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/validate/validate.h"

#include <stdio.h>

/* -- Steps that are short -- */

/* Objects of custom resources, and parts other than the status, are not known to
 * kube/types/validate. */
static bool is_validated(const struct kube_call *call)
{
    struct slice sub = call->path.subresource;
    return !(call->kind->flags & KUBE_CUSTOM) &&
           strcmp(call->kind->group, "apiextensions.k8s.io") != 0 &&
           (!sub.len || slice_is(sub, "status") || slice_is(sub, "approval"));
}

/* Fails also with the causes that the rules of metadata have found before. */
static enum kube_stepped validate_builtin(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_field_errors errors = {.arena = &call->arena};
    struct slice sub = call->path.subresource;
    enum kube_validated part = KUBE_VALIDATE_OBJECT;
    if (sub.len)
        part = slice_is(sub, "approval") ? KUBE_VALIDATE_APPROVAL : KUBE_VALIDATE_STATUS;
    bool fine = kube_validate(change->arena, call->kind, change->object, change->old, part,
                              call->api->config->unprivileged, &errors);
    /* Events of both groups are of one kind, which Kubernetes names without a group. */
    bool event = strcmp(call->kind->kind, "Event") == 0;
    return (fine && !call->status.cause_count) ||
           kube_fail_field_errors(&call->status, &errors,
                                  slice_from_text(event ? "" : call->kind->group),
                                  slice_from_text(call->kind->kind), change->name);
}

static enum kube_stepped decide(struct kube_change *change)
{
    change->object = NULL;
    change->decision = change->decide(change, change->old, &change->object);
    return change->decision != KUBE_DECIDE_FAIL;
}

static enum kube_stepped answer(struct kube_change *change)
{
    change->done(change);
    return KUBE_STEP_LEFT;
}

/* -- The lists -- */

enum {
    /* Without this flag a step runs on the worker if the objects are large. */
    ON_LOOP = 1 << 0, /* always on the thread of the API; it may wait */
    ONCE = 1 << 1,    /* a new object is prepared once, for all attempts */
    /* Where a list is entered again. */
    READS = 1 << 2,     /* KUBE_AGAIN_READ */
    DECIDES = 1 << 3,   /* KUBE_AGAIN_DECIDE */
    JOINS = 1 << 4,     /* an update has found no object, and continues as a create */
    MUTATES = 1 << 5,   /* mutating admission has changed the object: its second pass */
    ANSWERS = 1 << 6,   /* a dry run continues here */
    VERSIONS = 1 << 21, /* an update has to know an object in another version */
    /* Steps that only some writes have. */
    CHARGED = 1 << 7,      /* writes that kube_admit_quota has charged to quotas */
    CUSTOM = 1 << 8,       /* objects of custom resources */
    BUILTIN = 1 << 9,      /* objects that kube/types/validate knows */
    DEFINITION = 1 << 10,  /* definitions of custom resources themselves */
    CERTIFICATE = 1 << 11, /* requests for certificates */
    SERVICE = 1 << 12,     /* services, which reserve addresses and ports */
    GUARDED = 1 << 13,     /* roles and others that could give their writer more rights */
    POLICY = 1 << 14,      /* admission policies and bindings themselves */
    BOUND = 1 << 15,       /* there are webhooks or bindings of policies, which may concern it */
    JUDGED = 1 << 16,      /* facts were gathered for policies and webhooks */
    ASKED = 1 << 17,       /* their evaluation has asked something */
    NAMESPACE = 1 << 18,   /* namespaces */
    OF_NODE = 1 << 19,     /* pods, and tokens of accounts, which nodes may write with limits */
    CONVERTED = 1 << 20,   /* objects of custom resources that a webhook converts */
    ONLY = CONVERTED | CUSTOM | BUILTIN | DEFINITION | CERTIFICATE | SERVICE | GUARDED | POLICY |
           NAMESPACE | OF_NODE,
};

struct kube_step {
    kube_step_fn *run;
    unsigned flags;
};

/* POST, and a PUT or PATCH that creates. */
static const struct kube_step creates[] = {
    /* The object as the client wants it. */
    {kube_create_decode, 0},
    {kube_create_complete, JOINS},
    {kube_custom_default, CUSTOM},
    {kube_create_default, 0},
    {kube_create_own, 0}, /* what follows is not the client's */
    {kube_create_read_namespace, ON_LOOP | READS},
    {kube_admit_gather, ON_LOOP | DECIDES | MUTATES}, /* plugins may have to know more */
    {kube_node_gather, ON_LOOP | OF_NODE},
    {kube_policies_gather, ON_LOOP | BOUND},
    /* Mutating admission. */
    {kube_mutating_begin, ONCE | JUDGED},
    {kube_admit_mutate, ONCE},
    {kube_policies_ask, ON_LOOP | ONCE | ASKED},
    {kube_policies_mutate, ONCE | JUDGED},
    {kube_policies_ask, ON_LOOP | ONCE | ASKED},
    {kube_webhooks_choose, ONCE | JUDGED},
    {kube_webhooks_call, ON_LOOP | ONCE | JUDGED},
    {kube_webhooks_take, ONCE | JUDGED},  /* back to choose the next one */
    {kube_mutating_again, ONCE | JUDGED}, /* back to MUTATES, once, if the object has changed */
    /* What the server sets. */
    {kube_create_prepare, ONCE},
    {kube_certificate_create, CERTIFICATE | ONCE},
    /* Validation. Each kind has one of the first three. */
    {kube_definition_create, DEFINITION | ONCE},
    {kube_custom_validate, CUSTOM | ONCE},
    {validate_builtin, BUILTIN | ONCE},
    {kube_custom_default_again, CUSTOM | ONCE},
    {kube_without_effect, ONCE},
    {kube_reserve, SERVICE | ONCE}, /* only of a valid object, so that none is reserved in vain */
    {kube_create_encode, ONCE},     /* from here on the object is prepared: ONCE is skipped */
    /* Validating admission. Quotas are last, so that a write that is refused is not charged. */
    {kube_admit_check, 0},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_check, JUDGED}, /* on the worker if it costs much; it may go back to ask */
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose_checks, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take_checks, JUDGED}, /* back to choose more if there are many */
    {kube_admit_quota, 0},
    {kube_change_guard, ON_LOOP | GUARDED},
    /* Storage. */
    {kube_convert_to_store, ON_LOOP | CONVERTED},
    {kube_create_look, ON_LOOP},      /* a dry run goes to the row that ANSWERS */
    {kube_charge, ON_LOOP | CHARGED}, /* has waited for its turn: back to DECIDES */
    /* Back to READS if the namespace, a quota or an address has changed, and with another name if a
     * generated one is in use. A PUT or PATCH whose object exists meanwhile continues as an update.
     */
    {kube_create_store, ON_LOOP},
    {kube_store_leave_queues, ON_LOOP},
    {kube_policies_settle, ON_LOOP | POLICY},
    {kube_admit_settle, ON_LOOP | NAMESPACE},
    {kube_convert_answer, ON_LOOP | CONVERTED | ANSWERS},
    {kube_create_answer, ON_LOOP}, /* sends large answers to the worker itself */
    {NULL, 0},
};

/* PUT and PATCH, of an object or of a part of it. */
static const struct kube_step updates[] = {
    /* The object as the client wants it: the body, or the stored object with the patch. */
    {kube_update_decode, 0},
    {kube_store_enter_queue, ON_LOOP},
    {kube_store_read, ON_LOOP | READS},
    {kube_admit_gather, ON_LOOP | DECIDES},
    {kube_policies_gather, ON_LOOP | BOUND},
    {kube_convert_versions, ON_LOOP | CONVERTED | VERSIONS},
    {kube_convert_stored, ON_LOOP | CONVERTED},
    {kube_store_parse, 0},
    {kube_update_make, 0}, /* none is stored: continues as a create, or fails */
    {kube_custom_default, CUSTOM},
    {kube_update_default, 0},
    {kube_update_own, 0}, /* what follows is not the client's */
    /* Mutating admission. */
    {kube_mutating_begin, JUDGED},
    {kube_admit_mutate, MUTATES},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_mutate, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take, JUDGED},  /* back to choose the next one */
    {kube_mutating_again, JUDGED}, /* back to MUTATES, once, if the object has changed */
    /* What the server sets. */
    {kube_definition_default, DEFINITION},
    {kube_update_prepare, 0},
    {kube_reserve, SERVICE}, /* keeps the addresses that the object has; validation compares them */
    /* Validation. Each kind has one of the first three. */
    {kube_definition_update, DEFINITION},
    {kube_custom_validate, CUSTOM},
    {validate_builtin, BUILTIN},
    {kube_without_effect, 0},
    /* Validating admission. Quotas are last, so that a write that is refused is not charged. */
    {kube_admit_check, 0},
    {kube_survey_pods, ON_LOOP | NAMESPACE}, /* warns of pods that a new label forbids */
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_check, JUDGED}, /* on the worker if it costs much; it may go back to ask */
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose_checks, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take_checks, JUDGED}, /* back to choose more if there are many */
    {kube_admit_quota, 0},
    {kube_update_conclude, 0},
    {kube_store_encode, 0},
    {kube_change_guard, ON_LOOP | GUARDED},
    /* Storage. */
    {kube_convert_to_store, ON_LOOP | CONVERTED},
    {kube_charge, ON_LOOP | CHARGED}, /* has waited for its turn: back to DECIDES */
    {kube_store_write, ON_LOOP},      /* another write was faster: back to DECIDES */
    {kube_store_leave_queues, ON_LOOP},
    {kube_policies_settle, ON_LOOP | POLICY},
    {kube_admit_settle, ON_LOOP | NAMESPACE},
    {kube_convert_answer, ON_LOOP | CONVERTED},
    {kube_update_answer, ON_LOOP}, /* sends large answers to the worker itself */
    {NULL, 0},
};

/* A PUT that may only say that its client is still there: kube/handlers/write/heartbeat.h. */
static const struct kube_step heartbeats[] = {
    {kube_store_enter_queue, ON_LOOP},
    {kube_store_read, ON_LOOP | READS},
    {kube_heartbeat_take, ON_LOOP | DECIDES}, /* it does not: continues with the list of updates */
    {kube_store_write, ON_LOOP},
    {kube_store_leave_queues, ON_LOOP},
    {kube_update_answer, ON_LOOP},
    {NULL, 0},
};

/* Changes with a function that decides: a DELETE of one object or of many, the binding and the
 * eviction of a pod, and the GET of a Scale, which changes nothing. */
static const struct kube_step changes[] = {
    {kube_store_enter_queue, ON_LOOP},
    {kube_store_read, ON_LOOP | READS},
    {kube_admit_gather, ON_LOOP | DECIDES}, /* gathers nothing, but counts the attempt */
    {kube_policies_gather, ON_LOOP | BOUND},
    {kube_convert_stored, ON_LOOP | CONVERTED},
    {kube_store_parse, 0},
    {decide, 0},
    /* A delete; what was posted has passed `admits`. */
    {kube_mutating_begin, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_check, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose_checks, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take_checks, JUDGED},
    {kube_store_encode, 0},
    {kube_convert_to_store, ON_LOOP | CONVERTED},
    {kube_store_write, ON_LOOP}, /* another write was faster: back to DECIDES */
    {kube_store_leave_queues, ON_LOOP},
    {kube_policies_settle, ON_LOOP | POLICY},
    {kube_convert_answer, ON_LOOP | CONVERTED},
    {answer, ON_LOOP}, /* sends large answers to the worker itself */
    {NULL, 0},
};

/* What is posted to an object and is not stored itself, and the options of a connection, before
 * anything is done about it. */
static const struct kube_step admits[] = {
    {kube_node_check_posted, ON_LOOP | OF_NODE},
    {kube_policies_gather, ON_LOOP | BOUND},
    {kube_mutating_begin, MUTATES | JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_mutate, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take, JUDGED},
    {kube_mutating_again, JUDGED},
    {decide, 0}, /* whether it is right, and what the server sets in it */
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_policies_check, JUDGED},
    {kube_policies_ask, ON_LOOP | ASKED},
    {kube_webhooks_choose_checks, JUDGED},
    {kube_webhooks_call, ON_LOOP | JUDGED},
    {kube_webhooks_take_checks, JUDGED},
    {answer, ON_LOOP},
    {NULL, 0},
};

/* -- Running them -- */

const struct kube_step *kube_step_before(const struct kube_step *step)
{
    return step - 1;
}

/* Nearly always there are neither policies nor webhooks, and these comparisons are all that they
 * cost. A write that had some in the attempt before has to release them. */
static bool is_bound(const struct kube_change *change)
{
    return change->policies || change->concerns & POLICY ||
           !kube_admission_is_unbound(change->call->api->admission);
}

/* Runs steps until one waits or answers. */
static void run(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    for (;;) {
        const struct kube_step *step = change->step;
        unsigned flags = step->flags;
        /* Policies are known when the write comes to them, and quotas when it was admitted; the
         * rest is known from the start. */
        if ((flags & ONLY && !(flags & change->concerns)) || (flags & ONCE && change->prepared) ||
            (flags & CHARGED && !change->charges.count) ||
            (flags & (JUDGED | ASKED) && !change->policies) ||
            (flags & ASKED && !kube_policies_asked(change->policies))) {
            change->step++;
            continue;
        }
        size_t bytes = change->stored.len + call->request->body.len;
        if (flags & ON_LOOP) {
            /* A call on the worker comes back, and continues here. */
            if (kube_call_defers(call, run))
                return;
            if (flags & BOUND && !is_bound(change)) {
                change->step++;
                continue;
            }
        } else if (!call->work.away && kube_call_is_large(call, bytes)) {
            kube_call_work(call, bytes, run);
            return;
        }
        enum kube_stepped ended = step->run(change);
        if (ended == KUBE_STEP_LEFT)
            return;
        if (ended == KUBE_STEP_LONG) {
            kube_call_work(call, KUBE_WORK_BYTES_MAX + 1, run);
            return;
        }
        /* An object that was made after an allocation failed is neither written nor answered, and a
         * reason that was found then may be wrong. */
        if (!(flags & ON_LOOP) && kube_change_ran_out(change)) {
            if (ended != KUBE_STEP_FAIL || !kube_code_is_no_memory(kube_status_code(&call->status)))
                kube_fail_engine(&call->status, ST_NOMEM);
            ended = KUBE_STEP_FAIL;
        }
        if (ended == KUBE_STEP_FAIL) {
            kube_call_fail(call);
            return;
        }
        if (ended == KUBE_STEP_NEXT)
            change->step++;
    }
}

/* kube_steps_check sees to it that the list has such a row. */
static const struct kube_step *find_row(const struct kube_step *steps, unsigned flag)
{
    while (!(steps->flags & flag)) {
        assert(steps->run);
        steps++;
    }
    return steps;
}

void kube_steps_check(void)
{
    static const struct kube_step *const lists[] = {creates, updates, heartbeats, changes};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const struct kube_step *read = find_row(lists[i], READS);
        const struct kube_step *decide = find_row(lists[i], DECIDES), *last = decide;
        /* The loop goes back to rows that may wait, and to one of each kind. */
        assert(read->flags & ON_LOOP && decide->flags & ON_LOOP && read < decide);
        while (last[1].run) {
            last++;
            assert(!(last->flags & (READS | DECIDES)));
        }
        /* The last one answers: it uses the exchange, which belongs to the thread of the API. */
        assert(last->flags == ON_LOOP);
    }
    assert(find_row(creates, JOINS) < find_row(creates, READS));
    assert(find_row(creates, ANSWERS) > find_row(creates, DECIDES));
    assert(find_row(updates, VERSIONS) > find_row(updates, DECIDES));
}

void kube_change_free(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    kube_admit_release(change);
    if (change->policies)
        kube_policies_free(change);
    if (change->on_free)
        change->on_free(change);
    kube_change_fini(change);
}

static void begin(struct kube_change *change, const struct kube_step *steps)
{
    struct kube_call *call = change->call;
    const struct kube_kind *kind = call->kind;
    bool whole = !call->path.subresource.len;
    unsigned rules = call->rules;
    const struct kube_user_info *user = call->identity ? kube_identity_user(call->identity) : NULL;
    bool guarded = user && (kube_guard_applies(user, kind, call->path.subresource) ||
                            kube_admission_guards_owners(call->api->admission));
    bool custom = kind->flags & KUBE_CUSTOM, validated = is_validated(call);
    change->mutating = NULL;
    if (change->policies) /* those of the object before, of a collection */
        kube_policies_forget(change);
    change->goes_on =
        validated || (custom && (whole || call->subresource == KUBE_SUBRESOURCE_STATUS));
    change->steps = change->step = steps;
    change->arena = &change->scratch;
    change->operation = KUBE_ADMISSION_UPDATE;
    change->concerns =
        (custom ? CUSTOM : 0) | (custom && kube_conversion_has_webhook(kind) ? CONVERTED : 0) |
        (validated ? BUILTIN : 0) | (whole && rules & KUBE_IS_DEFINITION ? DEFINITION : 0) |
        (whole && rules & KUBE_IS_CERTIFICATE_REQUEST ? CERTIFICATE : 0) |
        (whole && rules & KUBE_RESERVES_ADDRESSES ? SERVICE : 0) |
        (strcmp(kind->group, "admissionregistration.k8s.io") == 0 ? POLICY : 0) |
        (whole && kube_kind_is(kind, "", "namespaces") ? NAMESPACE : 0) | (guarded ? GUARDED : 0) |
        (kube_node_may_write(call) ? OF_NODE : 0);
    call->handler.change = change;
    call->on_free = kube_change_free;
    run(call);
}

void kube_change_start(struct kube_change *change)
{
    begin(change, changes);
}

void kube_change_admit(struct kube_change *change)
{
    begin(change, admits);
}

void kube_change_next(struct kube_change *change)
{
    change->step++;
    run(change->call);
}

void kube_change_resume(struct kube_change *change, enum status status)
{
    if (kube_call_succeeded(change->call, status))
        run(change->call);
}

void kube_change_again(struct kube_change *change, enum kube_again from)
{
    change->mutating = NULL;
    change->step = find_row(change->steps, from == KUBE_AGAIN_READ ? READS : DECIDES);
    run(change->call);
}

enum kube_stepped kube_change_convert(struct kube_change *change)
{
    change->step = find_row(change->steps, VERSIONS);
    return KUBE_STEP_JUMP;
}

enum kube_stepped kube_change_as_put(struct kube_change *change)
{
    kube_write_queue_leave(&change->call->ticket); /* it enters again when its body was read */
    change->steps = change->step = updates;
    return KUBE_STEP_JUMP;
}

void kube_change_answer(struct kube_change *change)
{
    change->step = find_row(change->steps, ANSWERS);
    run(change->call);
}

enum kube_stepped kube_change_as_create(struct kube_change *change)
{
    change->of_update = true;
    change->prepared = false;
    change->mutating = NULL;
    change->lost = 0;
    change->operation = KUBE_ADMISSION_CREATE;
    change->steps = creates;
    change->step = find_row(creates, JOINS);
    return KUBE_STEP_JUMP;
}

enum kube_stepped kube_change_mutate_again(struct kube_change *change)
{
    change->step = find_row(change->steps, MUTATES);
    return KUBE_STEP_JUMP;
}

void kube_change_as_update(struct kube_change *change)
{
    change->operation = KUBE_ADMISSION_UPDATE;
    change->prepared = false;
    change->steps = updates;
    kube_change_again(change, KUBE_AGAIN_READ);
}

/* -- Options -- */

enum { FIELD_MANAGER_BYTES_MAX = 128 }; /* as in Kubernetes */

static const char *options_kind(struct slice method)
{
    if (slice_is(method, "POST"))
        return "CreateOptions";
    if (slice_is(method, "PUT"))
        return "UpdateOptions";
    return slice_is(method, "PATCH") ? "PatchOptions" : "DeleteOptions";
}

static void unsupported(struct kube_call *call, const char *field, const char *open,
                        struct slice value, const char *close, const char *supported)
{
    char message[256];
    snprintf(message, sizeof(message), "Unsupported value: %s\"%.*s\"%s: supported values: %s",
             open, (int)size_min(value.len, 64), (const char *)value.ptr, close, supported);
    kube_status_cause(&call->status, "FieldValueNotSupported", field, message);
}

/* An apply must name its manager, and only an apply can be forced. */
static void check_apply(struct kube_call *call)
{
    struct slice type = SLICE_EMPTY;
    (void)!http_request_get(call->request, SLICE_LITERAL("content-type"), &type);
    if (!slice_has_prefix(type, SLICE_LITERAL("application/apply-patch+yaml"))) {
        if (call->query.force_given)
            kube_status_cause(&call->status, "FieldValueForbidden", "force",
                              "Forbidden: may not be specified for non-apply patch");
        return;
    }
    if (!call->query.field_manager.len)
        kube_status_cause(&call->status, "FieldValueRequired", "fieldManager",
                          "Required value: is required for apply patch");
}

static void check_manager(struct kube_call *call)
{
    struct slice manager = call->query.field_manager;
    if (manager.len > FIELD_MANAGER_BYTES_MAX)
        kube_status_cause(&call->status, "FieldValueTooLong", "fieldManager",
                          "Too long: may not be more than 128 bytes");
    for (size_t i = 0; i < manager.len && i < FIELD_MANAGER_BYTES_MAX; i++) {
        AUTO(buf_fini) struct buf text = {0};
        if (manager.ptr[i] >= ' ' && manager.ptr[i] != 0x7f)
            continue;
        if (buf_append_text(&text, "Invalid value: ") == ST_OK &&
            go_quote(manager, &text) == ST_OK &&
            buf_append_format(&text, ": invalid character U+%04X (at position %zu)", manager.ptr[i],
                              i) == ST_OK &&
            buf_append(&text, slice_of("", 1)) == ST_OK)
            kube_status_cause(&call->status, "FieldValueInvalid", "fieldManager",
                              (const char *)text.ptr);
    }
}

static bool check_options(struct kube_call *call)
{
    struct slice method = call->request->method;
    static const char *const known[] = {"", "Ignore", "Strict", "Warn"};
    const struct kube_query *query = &call->query;
    bool deletes = slice_is(method, "DELETE"); /* has neither of these options */
    bool found = deletes;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        found = found || slice_is(query->field_validation, known[i]);
    if (slice_is(method, "PATCH"))
        check_apply(call);
    if (!deletes)
        check_manager(call);
    if (query->dry_run_unknown)
        unsupported(call, "dryRun", "[", query->dry_run_text, "]", "\"All\"");
    if (!found)
        unsupported(call, "fieldValidation", "", query->field_validation, "",
                    "\"\", \"Ignore\", \"Strict\", \"Warn\"");
    if (!call->status.cause_count)
        return true;
    return kube_fail_invalid(&call->status, SLICE_LITERAL("meta.k8s.io"),
                             slice_from_text(options_kind(method)), SLICE_EMPTY);
}

/* -- What is to be written -- */

/* A POST, PUT or PATCH of an object. */
static void write_object(struct kube_call *call)
{
    struct kube_change *change = arena_calloc(&call->arena, 1, sizeof(*change));
    if (!change) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    change->call = call;
    change->name = call->path.name;
    change->namespace = call->path.namespace;
    change->dry_run = call->query.dry_run;
    change->patches = call->verb == KUBE_VERB_PATCH;
    if (call->verb == KUBE_VERB_PUT && kube_heartbeat_may_be(change))
        begin(change, heartbeats);
    else
        begin(change, call->verb == KUBE_VERB_POST ? creates : updates);
}

typedef void handler(struct kube_call *call);

/* NULL: the method is not for this path. */
static handler *handler_of(const struct kube_call *call)
{
    bool named = call->path.name.len, posts = call->verb == KUBE_VERB_POST;
    bool everywhere = call->kind->flags & KUBE_NAMESPACED && !call->path.namespace.len;
    if (everywhere || call->kind->flags & KUBE_COMPUTED)
        return NULL;
    switch (call->subresource) {
    case KUBE_SUBRESOURCE_FINALIZE:
        return call->verb == KUBE_VERB_PUT ? write_object : NULL;
    case KUBE_SUBRESOURCE_TOKEN:
        return posts ? kube_account_request : NULL;
    case KUBE_SUBRESOURCE_POST:
        return posts ? kube_post_subresource : NULL;
    default:
        break;
    }
    /* Two kinds are only posted: bindings of pods, and reviews, which are answered. */
    if (kube_kind_is(call->kind, "", "bindings"))
        return posts && !named ? kube_post_subresource : NULL;
    if (call->kind->flags & KUBE_CREATE_ONLY)
        return posts && !named ? kube_review : NULL;
    if (posts)
        return named ? NULL : write_object;
    if (call->verb == KUBE_VERB_PUT || call->verb == KUBE_VERB_PATCH)
        return named ? write_object : NULL;
    /* The status and other parts of an object cannot be deleted. */
    if (call->subresource != KUBE_SUBRESOURCE_NONE)
        return NULL;
    return named ? kube_delete : kube_delete_collection;
}

void kube_mutate(struct kube_call *call)
{
    bool known = call->verb >= KUBE_VERB_POST && call->verb <= KUBE_VERB_DELETE_COLLECTION;
    handler *handle = known ? handler_of(call) : NULL;
    if (known && call->subresource == KUBE_SUBRESOURCE_UNKNOWN)
        kube_no_subresource(call);
    else if (!handle || call->path.watch)
        kube_not_allowed(call);
    else if (check_options(call))
        handle(call);
    else
        kube_call_fail(call);
}
