/* SPDX-License-Identifier: MIT */
/* What must hold, and whether it did. */
#include <stdio.h>

#include "bench.h"

#define MAX_BUDGETS 32

static struct budget settled[MAX_BUDGETS];
static size_t n_settled;

bool budget_holds(const struct budget *budget)
{
        return budget->tries > 0 &&
               (budget->at_least ? budget->best >= budget->limit : budget->best <= budget->limit);
}

void budget_try(struct budget *budget, double value)
{
        bool better = budget->at_least ? value > budget->best : value < budget->best;

        if (budget->tries++ == 0 || better)
                budget->best = value;
}

void budget_set(struct budget *budget, double value)
{
        budget->tries++;
        budget->best = value;
}

static void print(const struct budget *budget)
{
        if (budget->tries == 0) {
                printf("  not judged  %s\n", budget->what);
                return;
        }
        printf("  %-6s  %s: %.2f %s; budget: at %s %.4g %s",
               budget_holds(budget) ? "held" : "MISSED", budget->what, budget->best, budget->unit,
               budget->at_least ? "least" : "most", budget->limit, budget->unit);
        if (budget->tries > 1)
                printf(" (best of %u)", budget->tries);
        printf("\n");
}

void budget_settle(const struct budget *budget)
{
        print(budget);
        if (n_settled < MAX_BUDGETS)
                settled[n_settled++] = *budget;
}

int budget_verdict(void)
{
        size_t held = 0, missed = 0;

        if (n_settled == 0)
                return 0;
        printf("\nbudgets: ratios are between medians; the best of up to %d runs is judged, "
               "because "
               "the\nmachine may be busy with other things\n",
               MAX_TRIES);
        for (size_t i = 0; i < n_settled; i++) {
                print(&settled[i]);
                held += budget_holds(&settled[i]);
                missed += settled[i].tries > 0 && !budget_holds(&settled[i]);
        }
        printf("%zu held, %zu missed, %zu not judged\n", held, missed, n_settled - held - missed);
        return missed > 0 ? 1 : held < n_settled ? 2 : 0;
}
