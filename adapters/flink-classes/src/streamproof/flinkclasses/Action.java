package streamproof.flinkclasses;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** A method that does the action of the model with its name. */
@Retention(RetentionPolicy.RUNTIME)
@interface Action {}
