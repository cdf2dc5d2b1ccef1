/*
 * The connection of a command, its calls, and how a command fails.
 *
 * Texts of errors name what was tried and at which endpoint, and what to do; under the name etcdctl
 * they are etcdctl's.
 */
#ifndef VIGIL_CMD_CTL_SESSION_H
#define VIGIL_CMD_CTL_SESSION_H

#include "client/api/methods.h"
#include "cmd/ctl/ctl.h"

/* The client of all endpoints, made at the first call; NULL: it cannot be made, the reason was
 * printed and *ret_exit is the exit code. */
vigil_client *ctl_client(struct ctl *ctl, int *ret_exit);
/* A client of one endpoint, for commands that ask every member. The caller frees it. */
vigil_client *ctl_client_of(struct ctl *ctl, const char *endpoint, int *ret_exit);

/* Asks for a password at the terminal, without echo; reads a line of standard input if that is not
 * a terminal. NULL: there is none, and the reason was printed. */
const char *ctl_ask_hidden(struct ctl *ctl, const char *prompt);

/* The endpoints that were given; with --cluster those of the member list. In the arena. */
struct ctl_endpoints {
    const char *const *texts;
    size_t count;
};
struct ctl_endpoints ctl_endpoints(struct ctl *ctl);
int ctl_member_endpoints(struct ctl *ctl, struct ctl_endpoints *ret_endpoints);

/*
 * Sends one request and waits for its answer, at most --command-timeout. Both are the structs of
 * the method's row (client/api/methods.h); the answer lives until ctl_drop_answers or the end of
 * the run. Not CTL_OK: the error was printed, and this is the exit code.
 */
int ctl_call(struct ctl *ctl, enum client_method_id method, const void *request,
             const void **ret_response);
/* The same at one endpoint, with the error for the caller and nothing printed. */
int ctl_call_at(struct ctl *ctl, vigil_client *client, enum client_method_id method,
                const void *request, const void **ret_response, vigil_error *ret_error);

/* Frees all answers so far: for commands that make calls again and again. */
void ctl_drop_answers(struct ctl *ctl);
/* Frees the client and all answers; the frame calls it at the end. */
void ctl_end(struct ctl *ctl);

/* Whether endpoints without a scheme are reached with TLS. */
bool ctl_has_tls(const struct ctl *ctl);

/* The text of an error of libvigil in the style that was chosen. In the arena. */
const char *ctl_error_text(struct ctl *ctl, const vigil_error *error);
/* The same as gRPC for Go writes it: "rpc error: code = … desc = …". */
const char *ctl_rpc_error_text(struct ctl *ctl, const vigil_error *error);

/* The text with ordinary words instead of those with which Go refuses a number, a time or a switch.
 * The caller frees it. */
char *ctl_plain_words(const char *text);

/* A line for people, on standard error: only if that is a terminal, and never under the name
 * etcdctl, so that scripts see the same bytes with and without it. */
void ctl_hint(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "Error: …" and returns the exit code. */
int ctl_fail(struct ctl *ctl, enum ctl_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error of libvigil. */
int ctl_fail_with(struct ctl *ctl, const vigil_error *error);
/* Wrong words or flags: CTL_BAD_ARGUMENTS. */
int ctl_refuse(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Makes the client's callbacks until something has happened, at most timeout_ms (-1: any time).
 * False: SIGINT or SIGTERM has arrived. Clients of a session have no thread of their own, so
 * callbacks are made only here and in vigil_call_run.
 */
bool ctl_wait(vigil_client *client, int timeout_ms);
/* The same, and returns also when the descriptor can be read. */
bool ctl_wait_for(vigil_client *client, int fd, int timeout_ms);
/* From now on SIGINT and SIGTERM do not end the process; ctl_wait returns instead, and also when a
 * child has ended. */
void ctl_catch_signals(void);
/* True when SIGINT has arrived: watch, lock and elect end then. Call it after the wait
 * that the signal interrupts. */
bool ctl_interrupted(void);

#endif
