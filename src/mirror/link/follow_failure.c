#include "mirror/link/follow_failure.h"

#include <stdio.h>
#include <string.h>

void follow_failure_init(struct follow_failure *failure)
{
    lock_init(&failure->lock);
    failure->text[0] = '\0';
}

void follow_failure_fini(struct follow_failure *failure)
{
    lock_fini(&failure->lock);
}

void follow_failure_set(struct follow_failure *failure, const char *text)
{
    LOCK_SCOPE(&failure->lock);
    snprintf(failure->text, sizeof(failure->text), "%s", text);
}

void follow_failure_clear(struct follow_failure *failure)
{
    follow_failure_set(failure, "");
}

void follow_failure_get(struct follow_failure *failure, char ret_text[FOLLOW_FAILURE_BYTES])
{
    LOCK_SCOPE(&failure->lock);
    memcpy(ret_text, failure->text, sizeof(failure->text));
}
