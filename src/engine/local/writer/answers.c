#include "engine/local/writer/answers.h"

static void send_to(struct local_shared *shared, struct mailbox_chain *chains, unsigned number)
{
    if (!chains[number].first)
        return;
    local_answer_chain(shared->shards[number], &chains[number]);
    chains[number] = (struct mailbox_chain){0};
}

void local_answers_send(struct local_shared *shared, struct mailbox_chain *chains)
{
    unsigned used = local_shards_used(shared);
    for (unsigned i = 0; i < used; i++)
        send_to(shared, chains, i);
    send_to(shared, chains, shared->direct.number);
}
