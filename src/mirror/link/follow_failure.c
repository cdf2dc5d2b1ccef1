#include "mirror/link/follow_failure.h"

#include <stdio.h>
#include <string.h>

void trouble_init(struct trouble *trouble)
{
    lock_init(&trouble->lock);
    trouble->text[0] = '\0';
}

void trouble_fini(struct trouble *trouble)
{
    lock_fini(&trouble->lock);
}

void trouble_set(struct trouble *trouble, const char *text)
{
    LOCK_SCOPE(&trouble->lock);
    snprintf(trouble->text, sizeof(trouble->text), "%s", text);
}

void trouble_clear(struct trouble *trouble)
{
    trouble_set(trouble, "");
}

void trouble_get(struct trouble *trouble, char ret_text[TROUBLE_BYTES])
{
    LOCK_SCOPE(&trouble->lock);
    memcpy(ret_text, trouble->text, sizeof(trouble->text));
}
