/* Buys one whenever the price has risen since the last quote. Arguments: SOCKET INSTRUMENT */
#include "lowlat.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct strategy {
    int64_t last;
    unsigned long quotes, orders;
    bool is_over;
};

static void on_event(void *user, lowlat_node *node, const lowlat_event *event)
{
    struct strategy *it = user;
    lowlat_quote quote;
    if (event->kind == LOWLAT_EVENT_STOP)
        it->is_over = true;
    if (event->kind != LOWLAT_EVENT_RECORD || event->record->stamp.kind != LOWLAT_KIND_QUOTE ||
        lowlat_quote_of(event->record, &quote) != LOWLAT_STATUS_OK)
        return;
    int64_t middle = (quote.bid + quote.ask) / 2;
    if (it->quotes++ > 0 && middle > it->last) {
        lowlat_order order = {
            .instrument = event->record->stamp.instrument,
            .side = LOWLAT_SIDE_BUY,
            .price = quote.ask,
            .quantity = 1,
        };
        if (lowlat_send_order(node, event->record, &order) == LOWLAT_STATUS_OK)
            it->orders++;
    }
    it->last = middle;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    uint32_t instrument = (uint32_t)strtoul(arguments[2], NULL, 10);
    lowlat_strategy_options options = lowlat_strategy_options_default();
    options.socket = arguments[1];
    options.name = "first-c";
    options.instruments = &instrument;
    options.instrument_count = 1;
    lowlat_node *node = NULL;
    struct strategy it = {0};
    if (lowlat_join_strategy(&options, &node) != LOWLAT_STATUS_OK) {
        fprintf(stderr, "cannot join: %s\n", lowlat_last_error());
        return 1;
    }
    puts("joined");
    fflush(stdout);
    while (!it.is_over && lowlat_wait(node, UINT64_MAX) == LOWLAT_STATUS_OK &&
           lowlat_poll(node, on_event, &it, NULL) == LOWLAT_STATUS_OK)
        continue;
    if (lowlat_ended(node) != LOWLAT_STATUS_OK)
        fprintf(stderr, "ended: %s\n", lowlat_last_error());
    lowlat_leave(node);
    printf("%lu quotes, %lu orders\n", it.quotes, it.orders);
    return 0;
}
