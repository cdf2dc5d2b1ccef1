/* The operating system's resolver; both functions block. */
#include "client/names/resolver.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static enum status host_error(int code, int error_number, struct error *error)
{
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
        return error_set(error, ST_NOT_FOUND, "no such host");
    case EAI_MEMORY:
        return error_no_memory(error);
    case EAI_AGAIN:
        return error_set(error, ST_AGAIN, "temporary failure in name resolution");
    case EAI_SYSTEM:
        return error_set(error, ST_IO, "%s", strerrordesc_np(error_number));
    default:
        return error_set(error, ST_IO, "%s", gai_strerror(code));
    }
}

static enum status system_host(void *ctx, const char *host, struct address *addresses,
                               size_t *ret_count, struct error *error)
{
    (void)ctx;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    size_t count = 0;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code != 0)
        return host_error(code, errno, error);
    for (struct addrinfo *at = list; at && count < RESOLVER_ADDRESSES_MAX; at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
            continue;
        addresses[count] = (struct address){.len = at->ai_addrlen};
        memcpy(&addresses[count++].as, at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(list);
    if (count == 0)
        return error_set(error, ST_NOT_FOUND, "no such host");
    *ret_count = count;
    return ST_OK;
}

/* The resolver does not say whether a server has answered with a failure or not at all: that takes
 * at least as long as it waits for one. */
static enum status srv_error(int code, int error_number, bool took_long, struct error *error)
{
    if (code == HOST_NOT_FOUND || code == NO_DATA)
        return error_set(error, ST_NOT_FOUND, "no such host");
    if (code != TRY_AGAIN)
        return error_set(error, ST_IO, "server misbehaving");
    if (error_number == ECONNREFUSED)
        return error_set(error, ST_AGAIN, "connection refused");
    return error_set(error, ST_AGAIN, took_long ? "i/o timeout" : "server misbehaving");
}

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static enum status system_srv(void *ctx, const char *name, uint8_t *answer, size_t *ret_len,
                              struct error *error)
{
    (void)ctx;
    struct __res_state state = {0};
    if (res_ninit(&state) != 0)
        return error_set(error, ST_IO, "the resolver's configuration cannot be read");
    time_t begun_s = now_s();
    int len = res_nquery(&state, name, ns_c_in, ns_t_srv, answer, SRV_ANSWER_BYTES);
    int code = state.res_h_errno, error_number = errno;
    bool took_long = now_s() - begun_s >= state.retrans;
    res_nclose(&state);
    if (len < 0)
        return srv_error(code, error_number, took_long, error);
    *ret_len = size_min((size_t)len, SRV_ANSWER_BYTES); /* it is longer if it was truncated */
    return ST_OK;
}

static void write_server(const struct __res_state *state, int place,
                         char ret_text[RESOLVER_SERVER_BYTES])
{
    const struct sockaddr_in *v4 = &state->nsaddr_list[place];
    const struct sockaddr_in6 *v6 = state->_u._ext.nsaddrs[place];
    char address[INET6_ADDRSTRLEN] = "";
    bool is_v6 = v4->sin_family != AF_INET && v6;
    if (is_v6)
        inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof(address));
    else
        inet_ntop(AF_INET, &v4->sin_addr, address, sizeof(address));
    snprintf(ret_text, RESOLVER_SERVER_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", address,
             ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
}

void resolver_system_server(bool is_last, char ret_text[RESOLVER_SERVER_BYTES])
{
    struct __res_state state = {0};
    ret_text[0] = 0;
    if (res_ninit(&state) != 0)
        return;
    if (state.nscount > 0)
        write_server(&state, is_last ? state.nscount - 1 : 0, ret_text);
    res_nclose(&state);
}

const struct resolver_backend resolver_system = {
    .host = system_host,
    .srv = system_srv,
    .blocks = true,
};
