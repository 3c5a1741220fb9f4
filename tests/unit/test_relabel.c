// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "services/relabel.h"

#define LABELS                                                                                 \
	"{\"comm\":\"python3\",\"node\":\"n1\",\"__meta_process_user\":\"www-data\",\"team\":" \
	"\"Web\"}"

/* The labels BEFORE after the COUNT rules of TEXTS; NULL if these drop them. */
static char *made(const char *const *texts, size_t count, const char *before)
{
	struct relabel_rules rules = { 0 };
	json_t *labels = json_loads(before, 0, NULL);
	char *text = NULL;

	for (size_t i = 0; i < count; i++) {
		char *wrong = relabel__add(&rules, texts[i]);

		if (wrong)
			fail_msg("%s", wrong);
	}
	if (relabel__apply(&rules, labels))
		text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(labels);
	relabel__free(&rules);
	return text;
}

static void makes(const char *rule, const char *before, const char *wanted)
{
	char *text = made(&rule, 1, before);

	if (wanted)
		assert_string_equal(text, wanted);
	else
		assert_null(text);
	free(text);
}

static void labels_are_replaced(void **state)
{
	(void)state;
	makes("{\"target_label\":\"x\",\"replacement\":\"y\"}", "{}", "{\"x\":\"y\"}");
	makes("{\"source_labels\":[\"a\",\"b\"],\"target_label\":\"x\"}",
	      "{\"a\":\"1\",\"b\":\"2\"}", "{\"a\":\"1\",\"b\":\"2\",\"x\":\"1;2\"}");
	makes("{\"source_labels\":[\"a\",\"none\",\"b\"],\"separator\":\"/\",\"regex\":"
	      "\"(?P<first>.)//(.)\",\"target_label\":\"x\",\"replacement\":\"${2}_$first$$$9-$\"}",
	      "{\"a\":\"1\",\"b\":\"2\"}", "{\"a\":\"1\",\"b\":\"2\",\"x\":\"2_1$-$\"}");
	/* A name after $ is as long as possible, as in Go. */
	makes("{\"source_labels\":[\"a\"],\"target_label\":\"x\",\"replacement\":\"$1x-${1}x${\"}",
	      "{\"a\":\"1\"}", "{\"a\":\"1\",\"x\":\"-1x${\"}");
	makes("{\"source_labels\":[\"a\"],\"regex\":\"(.)(.*)\",\"target_label\":\"${1}_x\","
	      "\"replacement\":\"$2\"}",
	      "{\"a\":\"bc\"}", "{\"a\":\"bc\",\"b_x\":\"c\"}");
	/* An empty value removes the label.  A label with an invalid name is not set. */
	makes("{\"target_label\":\"a\",\"replacement\":\"\"}", "{\"a\":\"1\"}", "{}");
	makes("{\"source_labels\":[\"a\"],\"target_label\":\"$1\",\"replacement\":\"y\"}",
	      "{\"a\":\"1\"}", "{\"a\":\"1\"}");
}

static void the_whole_value_must_match(void **state)
{
	const char *const anchored = "{\"source_labels\":[\"a\"],\"regex\":\"b|bc\","
				     "\"target_label\":\"a\",\"replacement\":\"!\"}";

	(void)state;
	makes(anchored, "{\"a\":\"b\"}", "{\"a\":\"!\"}");
	makes(anchored, "{\"a\":\"bc\"}", "{\"a\":\"!\"}");
	makes(anchored, "{\"a\":\"abc\"}", "{\"a\":\"abc\"}");
	makes(anchored, "{\"a\":\"b\\n\"}", "{\"a\":\"b\\n\"}");
	makes("{\"source_labels\":[\"a\"],\"regex\":\"a.c\",\"action\":\"keep\"}",
	      "{\"a\":\"a\\nc\"}", "{\"a\":\"a\\nc\"}");
	makes("{\"source_labels\":[\"a\"],\"regex\":\"a.c\",\"action\":\"keep\"}",
	      "{\"a\":\"a\\u65e5c\"}",
	      "{\"a\":\"a\xe6\x97\xa5"
	      "c\"}");
}

static void services_are_chosen(void **state)
{
	(void)state;
	makes("{\"source_labels\":[\"a\"],\"regex\":\"1\",\"action\":\"keep\"}", "{\"a\":\"1\"}",
	      "{\"a\":\"1\"}");
	makes("{\"source_labels\":[\"a\"],\"regex\":\"2\",\"action\":\"keep\"}", "{\"a\":\"1\"}",
	      NULL);
	makes("{\"source_labels\":[\"a\"],\"regex\":\"1\",\"action\":\"Drop\"}", "{\"a\":\"1\"}",
	      NULL);
	makes("{\"source_labels\":[\"none\"],\"regex\":\"\",\"action\":\"drop\"}", "{}", NULL);
	makes("{\"source_labels\":[\"a\"],\"target_label\":\"b\",\"action\":\"keepequal\"}",
	      "{\"a\":\"1\"}", NULL);
	makes("{\"source_labels\":[\"a\"],\"target_label\":\"b\",\"action\":\"dropequal\"}",
	      "{\"a\":\"1\",\"b\":\"1\"}", NULL);
	makes("{\"source_labels\":[\"a\"],\"target_label\":\"b\",\"action\":\"dropequal\"}",
	      "{\"a\":\"1\"}", "{\"a\":\"1\"}");
}

static void names_are_changed(void **state)
{
	(void)state;
	makes("{\"action\":\"labelmap\",\"regex\":\"__meta_process_(.+)\"}", LABELS,
	      "{\"__meta_process_user\":\"www-data\",\"comm\":\"python3\",\"node\":\"n1\","
	      "\"team\":\"Web\",\"user\":\"www-data\"}");
	makes("{\"action\":\"labeldrop\",\"regex\":\"__.*|team\"}", LABELS,
	      "{\"comm\":\"python3\",\"node\":\"n1\"}");
	makes("{\"action\":\"labelkeep\",\"regex\":\"team\"}", LABELS, "{\"team\":\"Web\"}");
	makes("{\"action\":\"lowercase\",\"source_labels\":[\"team\"],\"target_label\":\"t\"}",
	      "{\"team\":\"Web \\u00c4\"}", "{\"t\":\"web \xc3\x84\",\"team\":\"Web \xc3\x84\"}");
	makes("{\"action\":\"uppercase\",\"source_labels\":[\"team\"],\"target_label\":\"team\"}",
	      "{\"team\":\"Web\"}", "{\"team\":\"WEB\"}");
}

static void rules_are_applied_in_order(void **state)
{
	const char *const rules[] = {
		"{\"source_labels\":[\"a\"],\"target_label\":\"__tmp\"}",
		"{\"source_labels\":[\"__tmp\"],\"target_label\":\"b\",\"replacement\":\"<$1>\"}",
		"{\"source_labels\":[\"b\"],\"regex\":\"<1>\",\"action\":\"drop\"}",
		"{\"target_label\":\"never\",\"replacement\":\"made\"}",
	};
	char *text = made(rules, 2, "{\"a\":\"1\"}");

	(void)state;
	assert_string_equal(text, "{\"__tmp\":\"1\",\"a\":\"1\",\"b\":\"<1>\"}");
	free(text);
	assert_null(made(rules, 4, "{\"a\":\"1\"}"));
}

static void bad_rules_are_refused(void **state)
{
	static const char *const texts[][2] = {
		{ "", "is not a rule" },
		{ "[]", "is not a rule" },
		{ "{\"action\":\"keep\",\"action\":\"drop\"}", "is not a rule" },
		{ "{\"action\":\"hashmod\"}", "action 'hashmod' is not one of" },
		{ "{\"target\":\"x\"}", "has no 'target'" },
		{ "{\"regex\":1}", "regex must be a string" },
		{ "{}", "needs a target_label" },
		{ "{\"action\":\"keepequal\"}", "needs a target_label" },
		{ "{\"action\":\"keep\"}", "needs source_labels" },
		{ "{\"target_label\":\"a-b\"}", "'a-b' is not a label name" },
		{ "{\"target_label\":\"1\"}", "'1' is not a label name" },
		{ "{\"target_label\":\"\"}", "'' is not a label name" },
		{ "{\"action\":\"lowercase\",\"target_label\":\"$1\"}",
		  "'$1' is not a label name" },
		{ "{\"action\":\"labelmap\",\"replacement\":\"a.b\"}",
		  "'a.b' is not a label name" },
		{ "{\"target_label\":\"x\",\"source_labels\":\"a\"}", "must be a list" },
		{ "{\"target_label\":\"x\",\"source_labels\":[1]}", "is not a label name" },
		{ "{\"target_label\":\"x\",\"source_labels\":[\"a b\"]}", "is not a label name" },
		{ "{\"target_label\":\"x\",\"regex\":\"a)|(b\"}", "unmatched closing parenthesis" },
		{ "{\"target_label\":\"x\",\"regex\":\"\\\\C\"}",
		  "is not a valid regular expression" },
	};
	struct relabel_rules rules = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *wrong = relabel__add(&rules, texts[i][0]);

		assert_non_null(wrong);
		if (!strstr(wrong, texts[i][1]))
			fail_msg("%s: %s", texts[i][0], wrong);
		free(wrong);
	}
	assert_int_equal(rules.count, 0);
	relabel__free(&rules);
}

/* Without a limit the rule, and this test, would take for ever. */
static void a_label_cannot_hang_a_rule(void **state)
{
	char value[4097], *before, *wanted;

	(void)state;
	memset(value, 'a', 4096);
	value[4096] = '\0';
	before = xasprintf("{\"a\":\"%s!\"}", value);
	wanted = xstrdup(before);
	makes("{\"source_labels\":[\"a\"],\"regex\":\"((a+)+)+b\",\"target_label\":\"a\"}", before,
	      wanted);
	makes("{\"source_labels\":[\"a\"],\"regex\":\"(.*)(.*)(.*)(.*)(.*)b\",\"action\":\"keep\"}",
	      before, NULL);
	free(before);
	free(wanted);
}

static void names_are_made_of_any_text(void **state)
{
	char *name = relabel__name("p_", "app.kubernetes.io/name-\xc3\x84");

	(void)state;
	assert_string_equal(name, "p_app_kubernetes_io_name___");
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_replaced),
		cmocka_unit_test(the_whole_value_must_match),
		cmocka_unit_test(services_are_chosen),
		cmocka_unit_test(names_are_changed),
		cmocka_unit_test(rules_are_applied_in_order),
		cmocka_unit_test(bad_rules_are_refused),
		cmocka_unit_test(a_label_cannot_hang_a_rule),
		cmocka_unit_test(names_are_made_of_any_text),
	};

	log__set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
