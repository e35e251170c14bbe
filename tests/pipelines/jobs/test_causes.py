"""Messages of failed jobs: exceptions as Spark 4.3 formats them, and their shortened form."""

import pytest

from barnabas.pipelines.jobs.causes import cause_of

STREAM = "[STREAM_FAILED] Query [id = 99bb28ed-cdf8, runId = ccf098d7-6e3b] terminated with exception: "
ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 1) (localhost executor driver): "
)
JAVA = (
    "\n\tat org.apache.spark.sql.execution.streaming.runtime.StreamExecution.runStream(StreamExecution.scala:357)\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
)
STATE = "\n=== Streaming Query ===\nIdentifier: [id = 99bb28ed, runId = ccf098d7]\nCurrent State: ACTIVE\n"
PROXY = (
    "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
    '  File "/venv/py4j/clientserver.py", line 644, in _call_proxy\n'
    "    return_value = getattr(self.pool[obj_id], method)(*params)\n"
    "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    '  File "/home/me/job.py", line 14, in each\n'
    '    raise RuntimeError("the disk is full")\n'
    "RuntimeError: the disk is full\n"
)
WORKER = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "/home/me/job.py", line 28, in bad\n'
    '    def bad(x): raise ValueError("no such number: 7")\n'
    "                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PROXY + STATE, "RuntimeError: the disk is full"),
        (STREAM + WORKER + "ValueError: no such number: 7\n SQLSTATE: 38000" + STATE, "ValueError: no such number: 7"),
        (WORKER + "barnabas.errors.UnknownTopicOrPartition: orders\n" + JAVA, "UnknownTopicOrPartition: orders"),
        (
            WORKER + "barnabas.pipelines.offsets.BadOption: say\n  one thing\nor the other\n\n" + JAVA,
            "BadOption: say\n  one thing\nor the other",
        ),
        (
            WORKER + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "x.py", line 1\n    f()\nOSError: no room\n' + JAVA,
            "OSError: no room",
        ),
        (WORKER + "KeyboardInterrupt\n" + JAVA, "KeyboardInterrupt"),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `nothere` cannot be resolved. Did you mean `value`? "
            "SQLSTATE: 42703; line 1 pos 0;\n'Project ['nothere]\n+- ~StreamingRelationV2\n",
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `nothere` cannot be resolved. Did you mean `value`?",
        ),
        (STREAM + "[USER_RAISED_EXCEPTION] too big SQLSTATE: P0001" + STATE, "[USER_RAISED_EXCEPTION] too big"),
        ("[PATH_NOT_FOUND] Path: /no. SQLSTATE: 42K03" + JAVA, "[PATH_NOT_FOUND] Path: /no."),
        (STREAM + ABORTED + "java.io.IOException: No space left on device" + JAVA, "No space left on device"),
        ("plain words", "plain words"),
    ],
)  # fmt: skip
def test_the_cause_is_what_is_left(text, cause):
    assert cause_of(text) == cause


def test_an_exception_without_words_is_its_name():
    assert cause_of(TimeoutError()) == "TimeoutError"
