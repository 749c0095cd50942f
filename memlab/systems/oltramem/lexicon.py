"""English given names by gender, and words for kin and friends.

Names of both genders ("Alex", "Sam") and names that are also words, places or months ("Grace", "Austin", "April") are
left out. Names that are not listed are not resolved.
"""

from __future__ import annotations

_MALE = """
Aaron Adam Adrian Ahmed Alan Albert Alejandro Alexander Alfred Ali Allen Alvin Andre Andreas Andrew Anthony Antonio
Arnold Arthur Barry Ben Benjamin Bernard Bill Bob Boris Brad Bradley Brandon Brendan Brian Bruce Bryan Calvin Carl
Carlos Charles Charlie Chris Christopher Clarence Colin Craig Daniel Dave David Dennis Derek Diego Dmitri Dominic
Donald Doug Douglas Duncan Dylan Ed Eddie Edgar Edward Edwin Elijah Elliot Emmanuel Enrique Eric Erik Ernest Ethan
Eugene Evan Felix Fernando Francisco Fred Frederick Gabriel Gary Geoffrey George Gerald Gilbert Giovanni Glenn
Gordon Greg Gregory Hans Harold Harry Hassan Hector Henry Herbert Howard Hugh Hugo Ian Igor Isaac Ivan Jacob Jake
James Jason Jay Jeff Jeffrey Jeremy Jerome Jerry Jim Jimmy Joe Joel John Johnny Jon Jonathan Jorge Jose Joseph
Joshua Juan Julian Julio Justin Karl Keith Ken Kenneth Kevin Kyle Larry Lars Lawrence Leo Leon Leonard Liam Louis
Lucas Luis Luke Malcolm Manuel Marco Marcus Mario Mark Martin Marvin Mateo Matt Matthew Maurice Max Michael Miguel
Mike Mohammed Muhammad Nate Nathan Neil Nicholas Nick Noah Norman Oliver Omar Oscar Owen Pablo Patrick Paul Pedro
Pete Peter Phil Philip Pierre Rafael Rahul Raj Ralph Ramon Raymond Ricardo Richard Rick Rob Robert Roberto Roger
Roland Ron Ronald Ross Roy Russell Ryan Samir Samuel Scott Sean Sebastian Sergio Seth Shaun Simon Stanley Stefan
Stephen Steve Steven Stuart Ted Terrence Theodore Thomas Tim Timothy Todd Tom Tommy Tony Travis Trevor Tyler Vincent
Vladimir Walter Warren Wayne William Zach Zachary
"""

_FEMALE = """
Abigail Adele Agnes Aisha Alexandra Alice Alicia Alison Allison Amanda Amelia Amy Ana Andrea Angela Anita Ann Anna
Anne Annie Anya Audrey Barbara Beatrice Becky Bernice Beth Betty Beverly Brenda Bridget Brittany Camila Camille
Carla Carmen Carol Carolina Caroline Carolyn Catherine Cecilia Celia Chloe Christina Christine Cindy Claire Clara
Claudia Connie Courtney Cynthia Danielle Deborah Debra Denise Diana Diane Donna Doris Dorothy Edith Eileen Elaine
Eleanor Elena Eliza Elizabeth Ella Ellen Elsa Emily Emma Erica Erin Esther Eva Fatima Fiona Frances Francesca
Gabriela Gabriella Gail Gina Gloria Greta Hannah Harriet Heather Helen Helena Ingrid Irene Isabel Isabella
Jacqueline Jane Janet Janice Jasmine Jeanne Jennifer Jenny Jessica Jill Joan Joanna Joanne Josephine Joyce Judith
Judy Julia Juliana Julie Karen Katarina Kate Katherine Kathleen Kathryn Kathy Katie Katrina Kimberly Kristin
Kristina Laura Lauren Leah Lena Lillian Linda Lisa Lori Louise Lucia Lucy Lydia Lynn Madeline Margaret Maria Mariam
Marie Marilyn Marina Martha Mary Maya Megan Melanie Melissa Mia Michelle Mildred Miriam Molly Monica Nadia Nancy
Naomi Natalie Natasha Nicole Nina Nora Norma Olga Olivia Pamela Patricia Paula Pauline Peggy Penelope Phyllis Priya
Rachel Rebecca Regina Rita Roberta Rosa Rosemary Rosie Samantha Sandra Sara Sarah Sharon Sheila Shirley Silvia Sofia
Sonia Sophia Sophie Stella Stephanie Sue Susan Susanna Suzanne Sylvia Tamara Tanya Teresa Theresa Tiffany Tina
Ursula Valerie Vanessa Vera Veronica Vicky Vivian Wendy Yolanda Yvonne Zoe
"""

MALE, FEMALE = frozenset(_MALE.split()), frozenset(_FEMALE.split())

HE_KIN = ("dad", "father", "brother", "husband", "son", "boyfriend", "grandfather", "grandpa", "uncle", "nephew",
          "stepdad", "father-in-law", "brother-in-law", "son-in-law", "ex-husband", "ex-boyfriend", "stepson",
          "little brother", "older brother", "younger brother", "big brother")
SHE_KIN = ("mom", "mum", "mother", "sister", "wife", "daughter", "girlfriend", "grandmother", "grandma", "granny",
           "aunt", "niece", "stepmom", "mother-in-law", "sister-in-law", "daughter-in-law", "ex-wife", "ex-girlfriend",
           "stepdaughter", "little sister", "older sister", "younger sister", "big sister")
ANY_KIN = ("friend", "best friend", "cousin", "boss", "manager", "colleague", "coworker", "neighbor", "neighbour",
           "roommate", "partner", "teacher", "coach", "therapist", "doctor", "landlord", "mentor", "kid", "child",
           "baby")
"""Words without a gender; a name after them may have one ("my friend Anna")."""
THEY_KIN = ("parents", "kids", "children", "grandparents", "siblings", "sisters", "brothers", "sons", "daughters",
            "cousins", "in-laws", "neighbors", "neighbours", "roommates", "nieces", "nephews", "twins")
