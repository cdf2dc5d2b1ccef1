#include "mirror/link/hint.h"

#include "base/status.h"

#include <string.h>

#define GIVE_USER "; authentication is enabled in the cluster: give --upstream-user"
#define GIVE_RIGHT "; --upstream-user must be allowed to read all keys that are mirrored"
#define CHECK_USER "; check --upstream-user and --upstream-password-file"
#define CHECK_CA "; check --upstream-cacert"
#define CHECK_CERT "; the member asks for a certificate: give --upstream-cert and --upstream-key"
#define USE_HTTPS "; if the member expects TLS, write its endpoint as https://"
#define USE_HTTP "; if the member does not use TLS, write its endpoint as http://"
#define IS_PEER "; is this the client URL of a member?"

/* What members and the TLS library say, in words that do not depend on the endpoint. */
static const struct {
    enum status status; /* whose text it is; ST_OK: the text below */
    const char *text;
    const char *hint;
} known[] = {
    {ST_AUTH_FAILED, NULL, CHECK_USER},     {ST_PERMISSION_DENIED, NULL, GIVE_RIGHT},
    {ST_OK, "unknown authority", CHECK_CA}, {ST_OK, "certificate required", CHECK_CERT},
    {ST_OK, "bad certificate", CHECK_CERT}, {ST_OK, "frame too large", IS_PEER},
};

/* How a server ends a connection whose first bytes it does not understand. */
static bool is_cut_off(const char *reason)
{
    static const char *const ends[] = {"the server closed the connection", ": EOF",
                                       "connection reset by peer", "wrong version number"};
    if (!strstr(reason, "cannot connect"))
        return false;
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (strstr(reason, ends[i]))
            return true;
    return false;
}

static bool mentions(const char *reason, const char *host, size_t len)
{
    for (const char *at = reason; len && (at = strchr(at, host[0])); at++)
        if (strncmp(at, host, len) == 0)
            return true;
    return false;
}

/* The hint for the endpoint that the reason names. */
static const char *scheme_hint(const char *endpoints, const char *reason)
{
    for (const char *at = endpoints; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        bool secure = strncmp(at, "https://", 8) == 0;
        size_t scheme = secure ? 8 : strncmp(at, "http://", 7) == 0 ? 7 : 0;
        if (mentions(reason, at + scheme, len - scheme))
            return secure ? USE_HTTP : USE_HTTPS;
        at += len;
    }
    return "";
}

const char *hint_for(const struct upstream_options *options, const char *reason)
{
    bool has_user = options->user && *options->user;
    if (strstr(reason, status_text(ST_USER_EMPTY)))
        return has_user ? "" : GIVE_USER;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strstr(reason, known[i].status ? status_text(known[i].status) : known[i].text))
            return known[i].hint;
    return is_cut_off(reason) && options->endpoints ? scheme_hint(options->endpoints, reason) : "";
}
