/*
 * A strategy in C: one order per quote, alternately buying and selling.
 *
 *   cargo build --release -p lowlat-capi
 *   cc -std=c11 -Wall -Wextra -Ipipeline/capi/include pipeline/capi/examples/strategy.c \
 *       -Ltarget/release -llowlat_capi -o strategy
 *   LD_LIBRARY_PATH=target/release ./strategy /run/lowlat/NAME/master.sock 3
 *
 * Arguments: the master's socket, the strategy's instruments.
 */
#include "lowlat.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { INSTRUMENTS_MAX = 64 };

typedef struct counts {
    uint64_t quotes, orders, accepted, rejected, filled, lost;
    /* td answers a strategy's orders in sequence: an unexpected number was answered twice, or never. */
    uint64_t last_answered, out_of_order;
    bool is_over, has_failed;
} counts;

static void failed(const char *doing)
{
    fprintf(stderr, "strategy: cannot %s: %s\n", doing, lowlat_last_error());
}

static void on_quote(counts *counts, lowlat_node *node, const lowlat_record *record)
{
    lowlat_quote quote;
    if (lowlat_quote_of(record, &quote) != LOWLAT_STATUS_OK) {
        failed("read a quote");
        counts->has_failed = true;
        return;
    }
    counts->quotes++;
    bool buys = counts->orders % 2 == 0;
    lowlat_order order = {
        .instrument = record->stamp.instrument,
        .side = buys ? LOWLAT_SIDE_BUY : LOWLAT_SIDE_SELL,
        .price = buys ? quote.ask : quote.bid,
        .quantity = 1,
    };
    if (lowlat_send_order(node, record, &order) != LOWLAT_STATUS_OK) {
        failed("send an order");
        counts->has_failed = true;
        return;
    }
    counts->orders++;
}

static void on_answer(counts *counts, const lowlat_record *record)
{
    lowlat_answer answer;
    if (lowlat_answer_of(record, &answer) != LOWLAT_STATUS_OK) {
        failed("read an answer");
        counts->has_failed = true;
        return;
    }
    if (answer.outcome == LOWLAT_OUTCOME_FILLED) {
        counts->filled += answer.quantity;
        return;
    }
    /* The run's user has halted the strategy: what was open is cancelled. */
    if (answer.outcome == LOWLAT_OUTCOME_CANCELLED)
        return;
    counts->out_of_order += answer.order_number != counts->last_answered + 1;
    counts->last_answered = answer.order_number;
    if (answer.outcome == LOWLAT_OUTCOME_ACCEPTED)
        counts->accepted++;
    else
        counts->rejected++;
}

static void on_event(void *user, lowlat_node *node, const lowlat_event *event)
{
    counts *counts = user;
    switch (event->kind) {
    case LOWLAT_EVENT_RECORD:
        if (event->record->stamp.kind == LOWLAT_KIND_QUOTE)
            on_quote(counts, node, event->record);
        else if (event->record->stamp.kind == LOWLAT_KIND_ANSWER)
            on_answer(counts, event->record);
        break;
    case LOWLAT_EVENT_LOST:
        counts->lost += event->lost;
        break;
    case LOWLAT_EVENT_STOP:
        counts->is_over = true;
        break;
    default:
        break;
    }
}

int main(int count, char **arguments)
{
    uint32_t instruments[INSTRUMENTS_MAX];
    if (count < 3 || count - 2 > INSTRUMENTS_MAX) {
        fprintf(stderr, "expected: SOCKET INSTRUMENT...\n");
        return 2;
    }
    for (int i = 2; i < count; i++)
        instruments[i - 2] = (uint32_t)strtoul(arguments[i], NULL, 10);

    lowlat_strategy_options options = lowlat_strategy_options_default();
    options.socket = arguments[1];
    options.name = "c-strategy";
    options.instruments = instruments;
    options.instrument_count = (size_t)(count - 2);
    lowlat_node *node = NULL;
    if (lowlat_join_strategy(&options, &node) != LOWLAT_STATUS_OK) {
        failed("join");
        return 1;
    }
    counts counts = {0};
    while (!counts.is_over && !counts.has_failed) {
        if (lowlat_wait(node, UINT64_MAX) != LOWLAT_STATUS_OK ||
            lowlat_poll(node, on_event, &counts, NULL) != LOWLAT_STATUS_OK) {
            failed("continue");
            counts.has_failed = true;
        }
    }
    if (lowlat_ended(node) != LOWLAT_STATUS_OK) {
        failed("continue");
        counts.has_failed = true;
    }
    lowlat_leave(node);
    printf("quotes %" PRIu64 " orders %" PRIu64 " accepted %" PRIu64 " rejected %" PRIu64 " filled %" PRIu64
           " out-of-order %" PRIu64 " lost %" PRIu64 "\n",
           counts.quotes, counts.orders, counts.accepted, counts.rejected, counts.filled, counts.out_of_order, counts.lost);
    return counts.has_failed ? 1 : 0;
}
