/*
 * A market maker in C: one order to buy at the best bid of an instrument, and one to sell at its best offer.
 *
 * When the market moves, both are replaced. When as much is bought as the position may grow, the order to buy is
 * cancelled, until something is sold; the same holds for the other side. After a restart it continues with the position
 * in td's ledger.
 *
 * Arguments: the master's socket, the instrument, the largest position.
 */
#include "lowlat.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTITY = 10, OPEN_MAX = 64 };

/* The order of one side; its number is 0 if there is none. */
struct side {
    uint64_t number;
    int64_t price;
    uint32_t left;
    bool is_cancelled;
};

struct maker {
    uint32_t instrument;
    int64_t position, position_max;
    lowlat_quote quote;
    /* By LOWLAT_SIDE_... */
    struct side sides[2];
    /* Orders of an earlier process that are not cancelled yet. */
    size_t left_over;
    bool is_over, has_failed;
};

static bool is_ok(struct maker *it, const char *doing, lowlat_status status)
{
    if (status == LOWLAT_STATUS_OK)
        return true;
    fprintf(stderr, "market maker: cannot %s: %s\n", doing, lowlat_last_error());
    /* Without room at td nothing was sent: the next quote tries again. */
    it->has_failed |= status != LOWLAT_STATUS_NO_CREDIT;
    return false;
}

static void read_position(struct maker *it, lowlat_node *node)
{
    lowlat_position positions[1];
    size_t count = 0;
    /* It trades one instrument. */
    if (is_ok(it, "read the position", lowlat_positions(node, positions, 1, &count)))
        it->position = count == 1 ? positions[0].quantity : 0;
}

/* Sends, replaces or cancels the order of a side, as the market and the position require. */
static void quote_side(struct maker *it, lowlat_node *node, const lowlat_record *cause, uint32_t code)
{
    struct side *side = &it->sides[code];
    bool buys = code == LOWLAT_SIDE_BUY;
    int64_t price = buys ? it->quote.bid : it->quote.ask;
    bool may_grow = (buys ? it->position : -it->position) < it->position_max;
    if (side->is_cancelled)
        return;
    if (side->number == 0) {
        lowlat_order order = {
            .instrument = it->instrument,
            .side = code,
            .price = price,
            .quantity = QUANTITY,
            .type = LOWLAT_TYPE_LIMIT,
        };
        if (may_grow && price > 0 && is_ok(it, "send an order", lowlat_send_order(node, cause, &order)))
            *side = (struct side){.number = order.number, .price = price, .left = QUANTITY};
    } else if (!may_grow || price == 0) {
        lowlat_status status = lowlat_cancel_order(node, cause, it->instrument, side->number);
        side->is_cancelled = is_ok(it, "cancel an order", status);
    } else if (price != side->price) {
        lowlat_status status = lowlat_replace_order(node, cause, it->instrument, side->number, price, QUANTITY);
        if (is_ok(it, "replace an order", status))
            side->price = price;
    }
}

static void on_answer(struct maker *it, lowlat_node *node, const lowlat_answer *answer)
{
    bool buys = it->sides[LOWLAT_SIDE_BUY].number == answer->order_number;
    struct side *side = &it->sides[buys ? LOWLAT_SIDE_BUY : LOWLAT_SIDE_SELL];
    if (side->number != answer->order_number) {
        bool is_closed = answer->outcome == LOWLAT_OUTCOME_CANCELLED || answer->outcome >= LOWLAT_OUTCOME_NOT_CHANGED;
        /* td answers in sequence: with the last order of the earlier process, its fills are in the ledger. */
        if (is_closed && it->left_over > 0 && --it->left_over == 0)
            read_position(it, node);
        return;
    }
    if (answer->outcome == LOWLAT_OUTCOME_FILLED) {
        it->position += buys ? (int64_t)answer->quantity : -(int64_t)answer->quantity;
        side->left -= answer->quantity;
        if (side->left == 0)
            *side = (struct side){0};
    } else if (answer->outcome >= LOWLAT_OUTCOME_NOT_CHANGED) {
        /* Still open: the next quote tries again. */
        side->is_cancelled = false;
        side->price = 0;
    } else if (answer->outcome == LOWLAT_OUTCOME_CANCELLED || answer->outcome >= LOWLAT_OUTCOME_REJECTED) {
        *side = (struct side){0};
    }
}

static void on_event(void *user, lowlat_node *node, const lowlat_event *event)
{
    struct maker *it = user;
    const lowlat_record *record = event->record;
    if (event->kind == LOWLAT_EVENT_STOP)
        it->is_over = true;
    if (event->kind == LOWLAT_EVENT_LOST && strcmp(event->stream, "td") == 0) {
        /* A restart continues with what is in td's ledger. */
        fprintf(stderr, "market maker: %" PRIu64 " answers are lost\n", event->lost);
        it->has_failed = true;
    }
    if (event->kind != LOWLAT_EVENT_RECORD || it->has_failed)
        return;
    if (record->stamp.kind == LOWLAT_KIND_QUOTE) {
        if (!is_ok(it, "read a quote", lowlat_quote_of(record, &it->quote)))
            return;
    } else if (record->stamp.kind == LOWLAT_KIND_ANSWER) {
        lowlat_answer answer;
        if (!is_ok(it, "read an answer", lowlat_answer_of(record, &answer)))
            return;
        on_answer(it, node, &answer);
        /* A rejected order would be rejected again: the next quote decides. */
        if (answer.outcome != LOWLAT_OUTCOME_FILLED && answer.outcome != LOWLAT_OUTCOME_CANCELLED)
            return;
    }
    if (it->left_over == 0) {
        quote_side(it, node, record, LOWLAT_SIDE_BUY);
        quote_side(it, node, record, LOWLAT_SIDE_SELL);
    }
}

/* Cancels the orders that an earlier process under this name has left open. */
static void start(struct maker *it, lowlat_node *node)
{
    lowlat_open_order open[OPEN_MAX];
    if (!is_ok(it, "read the open orders", lowlat_open_orders(node, open, OPEN_MAX, &it->left_over)))
        return;
    for (size_t i = 0; i < it->left_over; i++) {
        lowlat_status status = lowlat_cancel_order(node, NULL, open[i].instrument, open[i].number);
        it->has_failed |= !is_ok(it, "cancel an order", status);
    }
    if (it->left_over == 0)
        read_position(it, node);
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "expected: SOCKET INSTRUMENT POSITION_MAX\n");
        return 2;
    }
    struct maker it = {.instrument = (uint32_t)strtoul(arguments[2], NULL, 10), .position_max = atoll(arguments[3])};
    lowlat_strategy_options options = lowlat_strategy_options_default();
    options.socket = arguments[1];
    options.name = "market-maker";
    options.instruments = &it.instrument;
    options.instrument_count = 1;
    lowlat_node *node = NULL;
    if (!is_ok(&it, "join", lowlat_join_strategy(&options, &node)))
        return 1;
    start(&it, node);
    while (!it.is_over && !it.has_failed) {
        if (is_ok(&it, "wait", lowlat_wait(node, UINT64_MAX)))
            is_ok(&it, "poll", lowlat_poll(node, on_event, &it, NULL));
    }
    is_ok(&it, "continue", lowlat_ended(node));
    lowlat_leave(node);
    printf("position %" PRId64 "\n", it.position);
    return it.has_failed ? 1 : 0;
}
