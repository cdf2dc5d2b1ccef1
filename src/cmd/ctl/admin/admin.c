#include "cmd/ctl/admin/admin.h"

#include "codec/pb/rpc.pb.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* Go's strconv.ParseUint(word, 16, 64): no sign, no 0x, no spaces. Returns what it says otherwise,
 * or NULL. */
static const char *parse_hex(const char *word, uint64_t *ret_number)
{
    if (!*word || word[strspn(word, "0123456789abcdefABCDEF")])
        return "invalid syntax";
    errno = 0;
    uint64_t number = strtoull(word, NULL, 16);
    if (errno)
        return "value out of range";
    *ret_number = number;
    return NULL;
}

int admin_member_id(struct ctl *ctl, const char *word, uint64_t *ret_id)
{
    const char *wrong = parse_hex(word, ret_id);
    if (!wrong)
        return CTL_OK;
    bool plain = ctl->command->run == admin_move_leader;
    return ctl_refuse(ctl, "%sstrconv.ParseUint: parsing \"%s\": %s%s",
                      plain ? "" : "bad member ID arg (", word, wrong,
                      plain ? "" : "), expecting ID in Hex");
}

const char *admin_error_text(struct ctl *ctl, const vigil_error *error)
{
    return ctl_is_etcdctl(ctl) ? ctl_error_text(ctl, error) : error->text;
}

struct admin_text admin_endpoints_text(const struct ctl_endpoints *endpoints)
{
    struct admin_text result = {""};
    size_t used = 0;
    for (size_t i = 0; i < endpoints->count && used < sizeof(result.text); i++)
        used += (size_t)snprintf(result.text + used, sizeof(result.text) - used, "%s%s",
                                 i ? " " : "", endpoints->texts[i]);
    return result;
}

struct admin_text admin_errno_text(int error)
{
    struct admin_text result;
    snprintf(result.text, sizeof(result.text), "%s", strerror(error));
    result.text[0] = (char)tolower((unsigned char)result.text[0]);
    return result;
}

const struct pb_response_header *admin_header(const void *response)
{
    return *(const struct pb_response_header *const *)response;
}

void admin_fields_header(struct ctl *ctl, const void *response)
{
    ctl_field_header(ctl, admin_header(response));
}

int admin_call_and_print(struct ctl *ctl, enum client_method_id method, const void *request,
                         const struct ctl_shape *shape)
{
    const void *response;
    int code = ctl_call(ctl, method, request, &response);
    return code == CTL_OK ? ctl_print(ctl, shape, response) : code;
}
